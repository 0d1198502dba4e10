"""Lines of ink judged as the service judges them, and a service that is cut in other places."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from contract.alphabets import encode
from contract.pieces import RESTS, cut
from contract.strokes import UNITS_PER_LINE
from service.artifact import load_artifact
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from service.reader.likelihood import log_likelihood
from tests.service.altered import copy_of
from tests.service.serving import running, settings
from tests.service.writing import InkService, Strokes

_LINE_HEIGHT = 64
_ORIGIN = (32.0, 76.8)  # of the first line: half of it, and 0.7 more

Judge = Callable[[str, Strokes], tuple[float, float]]


@pytest.fixture(scope="module")
def judged(inks: Path) -> Judge:
    """Of a line in px the legibility, as the graph of the reader and the sum over paths have it,
    and the same with its logits divided by 3."""
    artifact = load_artifact(inks / "squint")
    runner = ScanRunner(artifact, Runtime("cpu", "scan", 1, 1))

    def of(text: str, strokes: Strokes) -> tuple[float, float]:
        ink = [(np.array(stroke) - _ORIGIN) * (1, -1) / _LINE_HEIGHT for stroke in strokes]
        pieces = cut([stroke * UNITS_PER_LINE for stroke in ink])
        forced = np.zeros((1 + len(pieces) + RESTS, 1, pieces.shape[1]), np.float32)
        forced[: len(pieces), 0] = pieces
        steps = {"forced": forced, "force": np.arange(len(forced))[:, None] < len(pieces)}
        runner.load(0, artifact.initial_state())
        logits = runner.run([0], steps, {}, filtered=False)["logits"][:, 0]
        found = log_likelihood(np.stack([logits, logits / 3]), encode(text)) / len(text)
        return float(found[0]), float(found[1])

    return of


@pytest.fixture(scope="module")
def narrow(inks: Path) -> Iterator[InkService]:
    """A service with fewer slots than a line has draws, the other runner and other chunks."""
    chosen = settings(inks, runner="slots", slots=3, chunk_steps=11, first_chunk_steps=2)
    with running(chosen) as started:
        yield InkService(started.app, started.client)


@pytest.fixture
def copy(inks: Path, tmp_path: Path) -> Path:
    """The artifact `scrawl`, to be changed."""
    return copy_of(inks / "scrawl", tmp_path)
