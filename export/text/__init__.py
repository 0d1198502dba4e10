"""Language models as a kind that is exported: golden vectors, and the parity report."""
