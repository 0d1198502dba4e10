"""A reader to be judged, from an artifact as it is served or from a run as it is trained.

Shapes: T steps, N pieces of P numbers, V symbols.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from contract.manifest import MANIFEST
from contract.pieces import Pieces, cut, line_of
from contract.reader import ReaderManifest, best_path
from export.artifact import read_artifact
from export.parity.served import ServedGraph
from models.reader import ReaderModel, TwinModel
from training import checkpoint
from training.ink.prepare import Ink
from training.loop import CHECKPOINT
from training.reader.kind import ReaderTraining, learned_reordered
from training.reader.rows import collate, strokes_of

_READING = ReaderTraining()


@dataclass(frozen=True, slots=True)
class Reader:
    """What makes logits `(T, V)`, rests included, of pieces `(N, P)`, and whether those of a whole
    line are `reordered`."""

    logits: Callable[[Pieces], NDArray[np.floating]]
    reordered: bool


def reader_of(source: Path) -> Reader:
    """The reader or twin in a folder. Raises `ValueError` where there is none."""
    return _served(source) if (source / MANIFEST).exists() else _trained(source)


def read(reader: Reader, inks: Sequence[Ink]) -> list[str]:
    """The text on the best path of every line, which is prepared as that of a caller is."""
    return [read_strokes(reader, strokes_of(ink)) for ink in inks]


def read_strokes(reader: Reader, strokes: Sequence[NDArray[np.floating]]) -> str:
    """The text on the best path of a line of strokes `(n, 2)` in any unit, y up; none where there
    is no ink."""
    line = line_of(strokes)
    if line is None:
        return ""
    logits = reader.logits(cut(line, reordered=reader.reordered))
    return "".join(r.character for r in best_path(logits))


def parameters_of(source: Path) -> int:
    """How many numbers it has learned."""
    if (source / MANIFEST).exists():
        return read_artifact(source).parameters
    return sum(p.numel() for p in _load(source)[0].parameters())


def _served(artifact: Path) -> Reader:
    manifest = read_artifact(artifact)
    if not isinstance(manifest, ReaderManifest):
        raise ValueError(f"{artifact} is of kind {manifest.kind}; only a reader reads ink")
    path = artifact / manifest.graphs.scan.plain
    graph = ServedGraph(path, manifest.ports, scan=True, threads=1)

    def logits(pieces: Pieces) -> NDArray[np.floating]:
        rests = np.zeros((1 + manifest.pieces.rests, pieces.shape[1]), np.float32)
        forced = np.concatenate([pieces, rests])
        force = np.arange(len(forced)) < len(pieces)
        steps = {"forced": forced[:, None], "force": force[:, None]}
        return np.asarray(graph.run(graph.initial_state(1), steps, {})[1]["logits"][:, 0])

    return Reader(logits, manifest.pieces.reordered)


def _trained(run: Path) -> Reader:
    model, facts = _load(run)
    model.eval()

    @torch.no_grad()
    def logits(pieces: Pieces) -> NDArray[np.floating]:
        batch = collate([pieces], ["-"])
        values, _ = model(batch.pieces, batch.lengths, model.initial_state(1))
        return np.asarray(values[:, 0].numpy())

    return Reader(logits, learned_reordered(facts))


def _load(run: Path) -> tuple[ReaderModel | TwinModel, dict[str, Any]]:
    if not (run / CHECKPOINT).exists():
        raise ValueError(f"{run} has neither {CHECKPOINT} nor {MANIFEST}")
    tensors, facts = checkpoint.load(run / CHECKPOINT)
    if facts.get("kind") != _READING.name:
        raise ValueError(f"{run} is no run of a reader; only a reader reads ink")
    model = _READING.model(facts["model"])
    model.load_state_dict(checkpoint.group(tensors, "best"))
    return model, facts
