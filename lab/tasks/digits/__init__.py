"""Section 6.6 of the paper: digits without their geometry, at large and small batches."""
