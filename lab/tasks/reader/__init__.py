"""Section 6.2 of the paper: a reader that answers questions on a story by looking into it."""
