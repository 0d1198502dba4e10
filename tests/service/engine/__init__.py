"""Tests of the engine: what it does with jobs, and what runs them."""
