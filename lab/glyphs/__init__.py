"""How legible the pen is, character by character."""
