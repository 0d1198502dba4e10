"""From a corpus to a served artifact: train, convert, verify. `python -m export --help`."""
