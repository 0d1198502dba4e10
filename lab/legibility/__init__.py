"""How legible the pen is: real and generated lines read by Tesseract."""
