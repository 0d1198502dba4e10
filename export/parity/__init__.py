"""Proof that what is served is what was trained: one file per kind of evidence."""
