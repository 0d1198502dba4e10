"""Section 6.5 of the paper: handwriting, with and without layer norm."""
