"""The best of several draws of a line: which is kept, what is told, and what stays as it was."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

from contract.alphabets import encode
from contract.pieces import RESTS, cut, line_of
from service.artifact import load_artifact
from service.engine.runtime import Runtime, ScanRunner
from service.http.keys import new_key
from service.ink import best
from service.reader.likelihood import log_likelihood
from tests.service.serving import Service, eventually, listening, running, settings
from tests.service.writing import InkService, Strokes

_TEXT = "an even keel"
_WAVE = [[x, 40 * np.sin(x / 9) + 60] for x in np.arange(0.0, 300.0, 1.5).tolist()]
_OWN = {"strokes": [_WAVE[:90], _WAVE[90:]], "text": "two waves"}


@pytest.fixture(scope="module")
def reads(inks: Path) -> ScanRunner:
    """The graph of the reader, without the service."""
    return ScanRunner(load_artifact(inks / "squint"), Runtime("cpu", "scan", 1, 1))


def _legibility(reads: ScanRunner, text: str, strokes: Strokes) -> float:
    """Of a line in px, as the graph and the sum over paths have it."""
    ink = line_of([np.array(stroke) * (1, -1) for stroke in strokes])
    assert ink is not None
    pieces = cut(ink)
    forced = np.zeros((1 + len(pieces) + RESTS, 1, pieces.shape[1]), np.float32)
    forced[: len(pieces), 0] = pieces
    force = np.arange(len(forced))[:, None] < len(pieces)
    reads.load(0, load_artifact(reads_folder(reads)).initial_state())
    logits = reads.run([0], {"forced": forced, "force": force}, {}, filtered=False)["logits"]
    return log_likelihood(logits[:, 0], encode(text)) / len(text)
