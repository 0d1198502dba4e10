"""The service: onnxruntime, numpy and FastAPI. It never imports torch, onnx, models or export."""
