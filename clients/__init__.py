"""Clients of a running service: a library of one file, and the command `evenkeel` on top of it."""
