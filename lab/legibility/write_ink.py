"""Handwriting by a served graph, without the service: many texts, each from its own randomness.

Shapes: T steps of a chunk, B rows side by side, U symbols of a text with its end, N points of ink.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contract.alphabets import END, WINDOW_SYMBOLS, encode
from contract.golden import Arrays
from export.convert import read_artifact
from export.parity.served import ServedGraph

ROWS = 50  # side by side
CHUNK_STEPS = 32
# Four times the points a character takes; who is not done by then never will be.
_STEPS_PER_CHARACTER, _STEPS_BESIDES = 40, 100


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
        if not 0 < len(text) < WINDOW_SYMBOLS:
            raise ValueError(f"{text!r} has {len(text)} characters; 1 to {WINDOW_SYMBOLS - 1} fit")
    manifest = read_artifact(artifact)
    path = artifact / manifest.graphs.scan.plain
    # On one thread: whatever is measured here, it is not the speed.
    graph = ServedGraph(path, manifest.ports, scan=True, threads=1)
    written: dict[int, Written] = {}
    # Texts of about one length together, or all of a batch would wait for its longest.
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for start in range(0, len(order), ROWS):
        places = order[start : start + ROWS]
        noise = [np.random.default_rng([seed, place]) for place in places]
        rows = _write_rows(graph, [texts[place] for place in places], bias, noise)
        written.update(zip(places, rows, strict=True))
    return [written[place] for place in range(len(texts))]


def _write_rows(
    graph: ServedGraph, texts: Sequence[str], bias: float, noise: Sequence[np.random.Generator]
) -> list[Written]:
    """Rows side by side, until all have ended or reached their limit."""
    row, state = _row(texts, bias), graph.initial_state(len(texts))
    limits = np.array([_STEPS_BESIDES + _STEPS_PER_CHARACTER * len(text) for text in texts])
    drawn = np.zeros((0, len(texts), 3), np.float32)
    ended = np.zeros((0, len(texts)), np.bool_)
    while (~ended.any(axis=0) & (len(ended) < limits)).any():
        state, outputs = graph.run(state, _steps(noise), row)
        drawn = np.concatenate([drawn, outputs["drawn"]])
        ended = np.concatenate([ended, outputs["ended"]])
    return [_cut(drawn[:, i], ended[:, i], limit) for i, limit in enumerate(limits)]


def _row(texts: Sequence[str], bias: float) -> Arrays:
    symbols = np.full((len(texts), WINDOW_SYMBOLS), END, np.int64)  # (B, U)
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
