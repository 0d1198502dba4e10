"""The step measurement: what it compares is the same work, and its ratios are what they say."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from bench import floor
from bench.step import (
    BYTES,
    FULL,
    QUICK,
    Plan,
    agreed_steps,
    compare,
    lines,
    measure,
    orders,
    random_artifact,
    task_of,
    verified,
)
from bench.step_peers import BUILDERS, Side, Task, absent
from lab.legibility import ink
from models.language import LanguageConfig, LanguageModel
from service.artifact import Artifact, load_artifact


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return random_artifact(tmp_path_factory.mktemp("step") / "lstm-16", 16)


@pytest.fixture
def one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Clock:
    """A clock that only the sides move."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def side(self, seconds: list[float]) -> Side:
        # Each is run once to be warm, and once more to be timed.
        left = iter(s for timed in seconds for s in (100 * timed, timed))

        def run() -> None:
            self.now_s += next(left)

        return Side(run)


def writes(values: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: values


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", ["served", "loop", "eager", "torchscript"])
def test_a_side_writes_the_bytes_that_are_served(tiny: Artifact, name: str) -> None:
    task = task_of(tiny)
    sides = {"served": BUILDERS["served"](task, 1), name: BUILDERS[name](task, 1)}
    found = verified(task, sides)
    assert "parts from served" not in found[name].note
    assert len(set(sides[name].run().tolist())) > 50  # and no side repeats one byte


@pytest.mark.usefixtures("one_thread")
@pytest.mark.skipif(bool(absent(["openvino"])), reason="OpenVINO is not installed")
def test_openvino_writes_the_bytes_that_are_served(tiny: Artifact) -> None:
    task = task_of(tiny)
    sides = {name: BUILDERS[name](task, 1) for name in ("served", "openvino")}
    assert "parts from served" not in verified(task, sides)["openvino"].note


@pytest.mark.usefixtures("one_thread")
@pytest.mark.skipif(not ink.ARTIFACT.exists(), reason="no pen is shipped")
def test_the_pens_sides_write_the_points_that_are_served() -> None:
    task = task_of(load_artifact(ink.ARTIFACT))
    sides = {name: BUILDERS[name](task, 1) for name in ("served", "loop", "eager")}
    found = verified(task, sides)
    assert all("parts from served" not in side.note for side in found.values())


def test_a_side_that_writes_other_bytes_fails_the_comparison(tiny: Artifact) -> None:
    task = task_of(tiny)
    same = np.zeros(BYTES, np.int64)
    early = same.copy()
    early[50] = 1
    sides = {"served": Side(writes(same)), "other": Side(writes(early))}
    with pytest.raises(
        AssertionError, match="other writes something else than served from step 50"
    ):
        verified(task, sides)


def test_a_side_that_writes_fewer_bytes_fails_the_comparison(tiny: Artifact) -> None:
    same = np.zeros(BYTES, np.int64)
    sides = {"served": Side(writes(same)), "short": Side(writes(same[1:]))}
    with pytest.raises(AssertionError, match="199"):
        verified(task_of(tiny), sides)


def test_a_byte_that_rounding_moved_late_is_told(tiny: Artifact) -> None:
    same = np.zeros(BYTES, np.int64)
    late = same.copy()
    late[150:] = 1
    sides = {"served": Side(writes(same)), "other": Side(writes(late), "a note")}
    found = verified(task_of(tiny), sides)
    assert found["other"].note == "a note; parts from served at step 150"


def test_a_variant_may_write_other_bytes_but_as_many(tiny: Artifact) -> None:
    same = np.zeros(BYTES, np.int64)
    variant = Side(writes(same + 1), check="length")
    found = verified(task_of(tiny), {"served": Side(writes(same)), "folded": variant})
    assert found["folded"].note == "parts from served at step 0"
    short = Side(writes(same[1:]), check="length")
    with pytest.raises(AssertionError, match="199"):
        verified(task_of(tiny), {"served": Side(writes(same)), "folded": short})


def test_points_agree_up_to_the_tolerance_and_nan_never() -> None:
    points = np.zeros((4, 3), np.float32)
    other = points.copy()
    other[2, 1] = 0.02
    assert agreed_steps(points, other, 0.03) == 4
    assert agreed_steps(points, other, 0.01) == 2
    other[1, 0] = math.nan
    assert agreed_steps(points, other, 0.03) == 1


def test_ratios_are_of_the_same_round() -> None:
    clock = Clock()
    # Every round is twice as slow as the one before, for all: each ratio is still 3, and 1/2.
    slowing = [2.0**turn for turn in range(9)]
    sides = {
        "served": clock.side(slowing),
        "eager": clock.side([3 * s for s in slowing]),
        "floor": clock.side([s / 2 for s in slowing]),
    }
    rows = compare("m", 1, sides, 200, 8, clock=clock, sleep=lambda s: None)
    served, eager, low = rows
    assert (eager.ratio_median, eager.ratio_p10, eager.ratio_p99) == (3, 3, 3)
    assert (low.ratio_median, low.over_floor_median) == (0.5, 1)
    assert (served.over_floor_median, served.over_floor_p99) == (2, 2)
    assert served.us_median == 16 / 200 * 1e6
    assert served.us_p99 == 256 / 200 * 1e6
    assert {r.rounds for r in rows} == {9}  # a multiple of three sides
    assert len(list(lines(rows))) == 4


def test_without_the_floor_nothing_is_said_of_it() -> None:
    clock = Clock()
    (row,) = compare("m", 1, {"served": clock.side([1.0])}, 1, 1, clock=clock, sleep=lambda s: None)
    assert row.over_floor_median is None


def test_what_passes_before_a_side_starts_is_not_its_time() -> None:
    clock = Clock()

    def settle(seconds: float) -> None:
        clock.now_s += 1000 * seconds

    (row,) = compare("m", 1, {"served": clock.side([1.0])}, 1, 1, clock=clock, sleep=settle)
    assert row.us_median == 1e6


def test_the_rotation_puts_each_side_first_equally_often() -> None:
    names = ["served", "eager", "floor"]
    rounds = list(orders(names, 12))
    assert Counter(order[0] for order in rounds) == {"served": 4, "eager": 4, "floor": 4}
    assert all(sorted(order) == sorted(names) for order in rounds)


def test_the_floor_counts_each_matrix_once_and_one_row_of_an_embedding() -> None:
    model = LanguageModel(LanguageConfig(units=8, embedding=4))
    matrices = 32 * 4 + 32 * 8 + 256 * 8
    vectors = 32 + 32 + 32 + 8 + 8 + 256  # gains and biases of three norms, the read-out's bias
    assert floor.weight_bytes(model) == 4 * (matrices + vectors + 4)
    assert floor.weight_bytes(nn.Linear(3, 5)) == 4 * 20


def test_the_floor_reads_the_whole_buffer_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def reader(buffer: torch.Tensor) -> torch.Tensor:
        read.append(buffer.nbytes)
        return buffer

    monkeypatch.setattr(floor, "_READERS", {"counted": reader})
    name, run = floor.reads(1000, 7)
    assert name == "counted"
    read.clear()
    run()
    assert read == [1000] * 7


@pytest.mark.usefixtures("one_thread")
def test_a_measurement_has_a_row_per_side_and_variant(tiny: Artifact) -> None:
    rows = measure(tiny, 1, 2, ["floor", "served"], {"folded": tiny})
    assert [r.side for r in rows] == ["served", "floor", "folded"]
    assert all(r.us_median > 0 and r.model == "lstm-16" for r in rows)


def test_an_input_is_in_the_shape_of_its_port(tiny: Artifact) -> None:
    task = Task(tiny, 3, {"uniform": np.arange(3, dtype=np.float32)}, {}, "next")
    ports = [p for p in tiny.manifest.ports.step if p.name == "uniform"]
    flat = [p.model_copy(update={"shape": ()}) for p in ports]
    deep = [p.model_copy(update={"shape": (1,)}) for p in ports]
    assert task.columns(flat)["uniform"].shape == (3, 1)
    assert task.columns(deep)["uniform"].shape == (3, 1, 1)
    assert task.row(tiny.manifest.ports.row)["logit_bias"].shape == (1, 256)


def test_every_plan_names_sides_that_exist() -> None:
    for plan in (QUICK, FULL):
        assert isinstance(plan, Plan)
        assert set(plan.sides) <= set(BUILDERS)
