"""Tests of handwriting models as they are served."""
