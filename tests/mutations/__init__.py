"""Defects planted on purpose, one at a time, and the tests that have to notice each of them."""
