"""Section 6.4 of the paper: DRAW, which draws digits in steps, with normalised LSTMs."""
