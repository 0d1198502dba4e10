"""What training and serving agree on, written once: numpy, pydantic and safetensors alone."""
