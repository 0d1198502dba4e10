"""Tests mirror the folders they test; every test function is named for the fact it shows."""
