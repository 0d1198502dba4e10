"""Pen data: every format to one form, lines of text with the strokes that wrote them."""
