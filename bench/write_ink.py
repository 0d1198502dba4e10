"""Handwriting by a served graph, without the service: many texts, each from its own randomness.

Shapes: T steps of a chunk, B rows side by side, U symbols of a text with its end, N points of ink.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from export.convert import GRAPHS, read_manifest
from models.handwriting import END, LONGEST_TEXT, encode

ROWS = 50  # side by side
CHUNK_STEPS = 32
# Four times the points a character takes; who is not done by then never will be.
_STEPS_PER_CHARACTER, _STEPS_BESIDES = 40, 100
_DTYPES = {"float32": np.float32, "int64": np.int64, "bool": np.bool_}

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Written:
    """Offsets `(N, 3)`: dx, dy (up) and pen_up; `ended` by the model, not cut off by the limit."""

    offsets: NDArray[np.float32]
    ended: bool


def write(artifact: Path, texts: Sequence[str], bias: float, seed: int) -> list[Written]:
    """Each text on a line. The same seed, text and place in `texts` give the same ink.

    Raises `ValueError` for a text the model cannot be asked for.
    """
    for text in texts:
        if not 0 < len(text) < LONGEST_TEXT:
            raise ValueError(f"{text!r} has {len(text)} characters; 1 to {LONGEST_TEXT - 1} fit")
    graph = _Graph(artifact)
    written: dict[int, Written] = {}
    # Texts of about one length together, or all of a batch would wait for its longest.
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for start in range(0, len(order), ROWS):
        places = order[start : start + ROWS]
        noise = [np.random.default_rng([seed, place]) for place in places]
        rows = graph.write([texts[place] for place in places], bias, noise)
        written.update(zip(places, rows, strict=True))
    return [written[place] for place in range(len(texts))]


class _Graph:
    """The sequence graph of an artifact and what its manifest says of it."""

    def __init__(self, artifact: Path) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # whatever else is measured, it is not the speed
        path = artifact / GRAPHS["scan"]["plain"]
        self._session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._state_ports = read_manifest(artifact)["ports"]["state"]

    def write(
        self, texts: Sequence[str], bias: float, noise: Sequence[np.random.Generator]
    ) -> list[Written]:
        """Rows side by side, until all have ended or reached their limit."""
        row = _row(texts, bias)
        state = {
            p["name"]: np.full((len(texts), *p["shape"]), p["initial"], _DTYPES[p["dtype"]])
            for p in self._state_ports
        }
        limits = np.array([_STEPS_BESIDES + _STEPS_PER_CHARACTER * len(text) for text in texts])
        drawn = np.zeros((0, len(texts), 3), np.float32)
        ended = np.zeros((0, len(texts)), np.bool_)
        while (~ended.any(axis=0) & (len(ended) < limits)).any():
            outputs = self._chunk(state, _steps(noise), row)
            drawn = np.concatenate([drawn, outputs["drawn"]])
            ended = np.concatenate([ended, outputs["ended"]])
            state = {name: outputs[f"{name}_after"] for name in state}
        return [_cut(drawn[:, i], ended[:, i], limit) for i, limit in enumerate(limits)]

    def _chunk(self, state: Arrays, steps: Arrays, row: Arrays) -> Arrays:
        names = ["drawn", "ended", *(f"{name}_after" for name in state)]
        return dict(zip(names, self._session.run(names, state | steps | row), strict=True))


def _row(texts: Sequence[str], bias: float) -> Arrays:
    symbols = np.full((len(texts), LONGEST_TEXT), END, np.int64)  # (B, U)
    for line, text in zip(symbols, texts, strict=True):
        line[: len(text)] = encode(text)
    return {
        "text": symbols,
        "length": np.array([len(text) for text in texts], np.int64),
        "bias": np.full(len(texts), bias, np.float32),
    }


def _steps(noise: Sequence[np.random.Generator]) -> Arrays:
    """The randomness of a chunk, nothing forced; a row's own, whoever is beside it."""
    # Odd multiples of 2**-24, as in the service: neither 0 nor 1.
    words = [g.integers(0, 2**23, CHUNK_STEPS) for g in noise]
    uniform = (np.stack(words, axis=1) * 2.0**-23 + 2.0**-24).astype(np.float32)  # (T, B)
    normal = np.stack([g.standard_normal((CHUNK_STEPS, 2), np.float32) for g in noise], axis=1)
    return {
        "uniform": uniform,
        "normal": normal,  # (T, B, 2)
        "forced": np.zeros((*uniform.shape, 3), np.float32),
        "force": np.zeros(uniform.shape, np.bool_),
    }


def _cut(drawn: NDArray[np.float32], ended: NDArray[np.bool_], limit: int) -> Written:
    """What was written before the first step that says the text has ended, `limit` steps at most.

    The point drawn at that step is where a next word would begin, no ink.
    """
    over = bool(ended[:limit].any())
    return Written(drawn[: int(ended.argmax()) if over else limit], over)
