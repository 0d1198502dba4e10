"""Replicas behind one port, of HAProxy or Ray Serve: what callers may count on, and its cost."""
