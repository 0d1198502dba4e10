"""The static site in a real browser, over a plain file server: `make site-check`."""
