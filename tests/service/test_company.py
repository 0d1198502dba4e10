"""A model whose rows move a bit of each other is not served, whatever its bounds allow."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.golden import Arrays
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.runners import make_runner
from service.engine.runtime import choose_runtime
from tests.service.altered import edit_golden, mix_rows
from tests.service.serving import attested, settings

Others = Callable[[int, int], bool]


@pytest.mark.parametrize(
    ("runner", "graph"),
    [
        ("scan", "model.onnx"), ("scan", "model-filtered.onnx"),
        ("slots", "step.onnx"), ("slots", "step-filtered.onnx"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("slots", [2, 24])
def test_rows_that_move_each_others_bits_fail_though_all_are_within_their_bounds(
    copy: Path, runner: str, graph: str, slots: int
) -> None:
    mix_rows(copy, graph)
    edit_golden(copy, logits=0.01)
    verdict = attested(copy, runner, slots)
    assert not verdict.ok
    assert 0 < verdict.max_error < verdict.bound
    assert verdict.detail == "logits of a row has other bits among 2 than alone"


class _Moved:
    """A runner with the last bit of a number moved in the second step, or in the state after it,
    of the slots that `others` says of how many run."""

    def __init__(self, runner: Any, name: str, others: Others) -> None:
        self._runner, self._name, self._others = runner, name, others
        self.width, self.load, self._rows = runner.width, runner.load, 0

    def read(self, slot: int) -> Arrays:
        state = self._runner.read(slot)
        if self._name in state and self._others(self._rows, slot):
            self._move(state[self._name], 0)
        return state

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        self._rows = len(slots)
        outputs = self._runner.run(slots, steps, row, filtered=filtered)
        for place in range(len(slots)):
            if self._name in outputs and self._others(self._rows, place):
                for later in outputs[self._name][1:2]:
                    self._move(later[place], 0)
        return outputs

    @staticmethod
    def _move(numbers: np.ndarray, place: int) -> None:
        numbers[place] = np.nextafter(numbers[place], np.float32(np.inf))


@pytest.mark.parametrize(
    ("name", "others", "among"),
    [
        ("logits", lambda rows, place: rows >= 6, 6),
        ("logits", lambda rows, place: rows == 16, 16),
        ("logits", lambda rows, place: rows == 24, 24),
        ("logits", lambda rows, place: place == 13, 14),
        ("logits", lambda rows, place: place == 20, 24),
        ("h0", lambda rows, place: (rows, place) == (3, 2), 3),
        ("c0", lambda rows, place: (rows, place) == (24, 23), 24),
    ],
    ids=["six-or-more", "sixteen", "all", "a-place", "a-late-place", "a-state", "the-last-state"],
)
def test_a_last_bit_that_depends_on_how_many_run_or_where_is_found(
    artifacts: Path, name: str, others: Others, among: int
) -> None:
    loaded = load_artifact(artifacts / "letters")
    runner: Any = make_runner(loaded, choose_runtime(settings(artifacts, slots=24)))
    verdict = attest(loaded, _Moved(runner, name, others))  # type: ignore[arg-type]
    assert verdict.detail == f"{name} of a row has other bits among {among} than alone"
    assert not verdict.ok
    assert verdict.max_error < verdict.bound


def test_rows_that_are_too_many_for_the_slots_are_not_all_tried_alone(artifacts: Path) -> None:
    """An artifact may have a hundred thousand of them."""
    loaded = load_artifact(artifacts / "letters")
    runner: Any = make_runner(loaded, choose_runtime(settings(artifacts, slots=3)))
    run, numbers = runner.run, []

    def counted(slots: Sequence[int], *inputs: Arrays, filtered: bool) -> Any:
        numbers.append(len(slots))
        return run(slots, *inputs, filtered=filtered)

    runner.run = counted
    assert attest(loaded, runner).ok
    # The first three of each graph. Of the four rows of the plain one the last is replayed, half by
    # half, and forced seven times.
    assert numbers.count(1) == 3 * 2 + 2 + 7
