"""Readers as a kind that is served: `/v1/read`, and ink read while it is written."""
