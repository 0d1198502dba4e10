"""What a figure was measured on: processor, cores, and the versions that matter."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import onnxruntime


def describe() -> dict[str, str | int]:
    """Hardware and versions, to stand beside every row of results."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "python": platform.python_version(),
        "torch": version("torch"),
        "onnxruntime": onnxruntime.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    flags = next((line for line in lines if line.startswith("flags")), "")
    width = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    return f"{next(names, platform.processor())}, {width}"
