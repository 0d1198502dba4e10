"""Measurements behind the README's figures. `python -m bench` (or `make bench`) runs them."""
