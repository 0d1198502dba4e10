"""What padding does to rows: self-attention over sentences of a batch that are not equally long."""
