"""The static site: its modules against the service, and the whole of it in a browser."""
