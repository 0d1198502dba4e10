"""Readers as a kind that is exported: golden vectors of invented ink, and the parity report."""
