"""The stored hands of the shipped pen: different people, told apart by what they write."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from service.artifact import load_artifact
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from service.ink.line import InkEdge, InkLine, InkPiece
from service.ink.measure import measure
from service.ink.model import InkModel
from service.state import Moment, StateCodec

FOLDER = Path(__file__).parents[3] / "artifacts" / "handwriting"
TEXT = "the quick brown fox jumps over the dog"
SEEDS = range(8)
# Two hands are told apart by a measure whose means differ by so many times its own scatter.
APART = 1.5
_RUNTIME = Runtime("cpu", "scan", 1, slots=len(SEEDS))

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="artifacts/handwriting is not there")


@pytest.fixture(scope="module")
def pen() -> InkModel:
    artifact = load_artifact(FOLDER)
    codec = StateCodec(b"no token is made", artifact, "here", InkEdge)
    return InkModel(artifact, _RUNTIME, codec, allow_unproved=False)


@pytest.fixture(scope="module")
def hands(pen: InkModel) -> dict[str, np.ndarray]:
    """Slant, size and speed of every stored hand, a row for each seed."""
    runner = ScanRunner(pen.artifact, _RUNTIME)
    return {
        name: np.array([looks(ink) for ink in write(runner, pen, moment)])
        for name, moment in pen.styles.items()
    }


def write(runner: ScanRunner, pen: InkModel, moment: Moment[InkEdge]) -> list[np.ndarray]:
    """The same text once for every seed, side by side, in one hand."""
    pieces: list[list[InkPiece]] = [[] for _ in SEEDS]
    lines = [
        InkLine(TEXT, replace(moment, seed=seed), pen.manifest, pieces[seed].append, bias=0.7)
        for seed in SEEDS
    ]
    for slot, line in enumerate(lines):
        runner.load(slot, line.state)
    row = {name: np.stack([line.row[name] for line in lines]) for name in lines[0].row}
    open_slots = set(range(len(lines)))
    while open_slots:
        inputs = [line.inputs(16) for line in lines]
        steps = {name: np.stack([i[name] for i in inputs], axis=1) for name in inputs[0]}
        outputs = runner.run(range(len(lines)), steps, row, filtered=False)
        for slot in sorted(open_slots):
            if lines[slot].accept({name: array[:, slot] for name, array in outputs.items()}):
                lines[slot].finish(None)
                open_slots.remove(slot)
    return [np.concatenate([piece.offsets for piece in parts]) for parts in pieces]


def looks(ink: np.ndarray) -> tuple[float, float, float]:
    found = measure(ink, len(TEXT))
    return found.slant_degrees, found.size_units, found.units_per_point


def test_there_are_eight_hands_or_more(hands: dict[str, np.ndarray]) -> None:
    assert len(hands) >= 8


def test_any_two_hands_differ_in_slant_size_or_speed(hands: dict[str, np.ndarray]) -> None:
    for (one, a), (other, b) in combinations(hands.items(), 2):
        scatter = np.sqrt((a.var(0) + b.var(0)) / 2)
        apart = np.abs(a.mean(0) - b.mean(0)) / np.maximum(scatter, 1e-6)
        assert apart.max() > APART, f"{one} and {other}: {apart.round(2)}"


def test_a_hand_does_not_differ_from_itself(hands: dict[str, np.ndarray]) -> None:
    """The control: half of the seeds against the other half."""
    for measures in hands.values():
        halves = measures[::2], measures[1::2]
        scatter = np.maximum(measures.std(0), 1e-6)
        assert (np.abs(halves[0].mean(0) - halves[1].mean(0)) / scatter).max() < 2 * APART


def test_a_stored_hand_is_state_and_no_ink(pen: InkModel) -> None:
    shapes = {p.name: p.shape for p in pen.manifest.ports.state}
    for moment in pen.styles.values():
        assert {name: array.shape for name, array in moment.state.items()} == shapes
