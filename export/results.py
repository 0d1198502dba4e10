"""Results as files, and what they were measured on: processor, cores, versions that matter."""

import argparse
import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnxruntime

from contract.files import require_writable, write_whole

# The vector units that kernels are picked by, the widest first.
_UNITS = {
    "avx512f": "AVX-512", "avx2": "AVX2", "sme2": "SME2", "sme": "SME", "sve": "SVE",
    "asimd": "NEON",
}  # fmt: skip


def results_folder(text: str) -> Path:
    """An option's folder for results, which is looked at before the work. Raises
    `ArgumentTypeError` where nothing can be written to it."""
    try:
        require_writable(Path(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(text)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Indented JSON with a newline at its end; a list without objects in it is on one line. Its
    folder is made if it is not there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, _indented(content) + "\n")


def _indented(content: Any, margin: str = "") -> str:
    inner = margin + "  "
    if isinstance(content, dict) and content:
        lines = [f"{json.dumps(str(k))}: {_indented(v, inner)}" for k, v in content.items()]
    elif isinstance(content, list | tuple) and any(isinstance(entry, dict) for entry in content):
        lines = [_indented(entry, inner) for entry in content]
    else:
        return json.dumps(content)
    begin, end = "{}" if isinstance(content, dict) else "[]"
    return begin + ",".join(f"\n{inner}{line}" for line in lines) + f"\n{margin}{end}"


def command(module: str, arguments: Sequence[str] | None) -> str:
    """What a module was run by, to stand beside its results, as a shell takes it; its arguments are
    those of the process where it was given none."""
    typed = sys.argv[1:] if arguments is None else arguments
    return shlex.join(["python", "-m", module, *typed])


def machine() -> dict[str, str | int]:
    """Hardware and versions, to stand beside every row of results."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": version("torch"),
        "onnxruntime": onnxruntime.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    split = (line.partition(":") for line in reversed(lines))
    fields = {name.strip(): told.strip() for name, _, told in split}  # of the first processor
    name = fields.get("model name", platform.machine())
    if "CPU part" in fields:  # ARM has numbers instead of names
        name = f"ARM {fields['CPU implementer']}, part {fields['CPU part']}"
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    return f"{name}, {next((_UNITS[flag] for flag in _UNITS if flag in flags), 'no AVX2')}"
