"""What models of eight bits and whoever feeds them agree on."""

# Inputs that are no hidden units are this large at most. In training a product takes larger ones
# for this, and so must whoever feeds a graph: its digits end a little further out.
LARGEST_INPUT = 256.0
