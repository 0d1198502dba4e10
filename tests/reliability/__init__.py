"""Overload, clients that leave, a long time and faults: what the service has to live through."""
