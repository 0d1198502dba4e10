"""Tests of the service, on artifacts made for them and on either runner."""
