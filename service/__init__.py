"""The service: onnxruntime, numpy and FastAPI. It never imports torch, onnx, models or export."""

import os

# onnxruntime's Linux wheels report usage to their maker unless told not to before the import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
