"""From a corpus to a served artifact: train, convert, verify. `python -m export --help`."""

import os

# onnxruntime's Linux wheels report usage to their maker unless told not to before the import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
