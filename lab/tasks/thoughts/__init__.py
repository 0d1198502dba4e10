"""Section 6.3 of the paper: skip-thoughts, sentences learned from the sentences around them."""
