"""Section 6.1 of the paper: order embeddings, pictures and sentences in one space."""
