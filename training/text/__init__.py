"""Text as training data: corpora of bytes, and the prediction of the next one."""
