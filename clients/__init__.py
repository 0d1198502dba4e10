"""Clients of a running service: a library, `clients.client`, and the command `evenkeel` on it."""
