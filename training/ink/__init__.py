"""Ink as training data: pens of every source, prepared lines, and the prediction of a point."""
