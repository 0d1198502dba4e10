"""How well ink is read on line: the reader beside Tesseract and beside its twin."""
