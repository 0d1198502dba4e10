"""The page in a real browser, against a real service with the shipped models: `make page-check`."""
