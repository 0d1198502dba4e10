"""Handwriting models as a kind that is exported: golden vectors, parity, stored hands."""
