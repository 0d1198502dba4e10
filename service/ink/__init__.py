"""Ink: from what the pen model emits to pictures and ink files, one file per step or format."""
