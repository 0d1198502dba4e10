"""Language models as a kind that is exported: golden vectors, parity, 8 bits."""
