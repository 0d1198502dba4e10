"""Section 6.3 of the paper: a reader that answers questions on a story by looking into it."""
