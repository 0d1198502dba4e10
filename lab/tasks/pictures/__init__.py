"""Section 6.7 of the paper: convolution, where batch norm won."""
