"""The step measurement: what it compares is the same work, and its ratios are what they say."""

import math
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.profiler import profile

from bench import eight_bits, floor, line, sides, step
from bench.goal import Goal
from bench.sides import BUILDERS, STEPS, Side, absent, task_of
from bench.step import (
    FULL,
    QUICK,
    Plan,
    agreed_steps,
    compare_sides,
    measure,
    orders,
    random_artifact,
    verified,
)
from export.artifact import load_model
from export.convert import read_source
from models.language import LanguageConfig, LanguageModel
from service.artifact import Artifact, load_artifact
from service.engine.runtime import Runtime


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return random_artifact(tmp_path_factory.mktemp("step") / "lstm-16", 16)


def writes(values: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: values


@pytest.mark.parametrize("name", ["loop", "eager", "torchscript", "openvino"])
def test_a_side_writes_the_bytes_that_are_served(tiny: Artifact, name: str) -> None:
    if reasons := absent([name]):
        pytest.skip(reasons[name])
    task = task_of(tiny)
    sides = {side: BUILDERS[side](task, 1) for side in ("served", name)}
    found = verified(task, sides)
    assert "parts from served" not in found[name].note
    assert len(set(sides[name].run().tolist())) > 50  # and no side repeats one byte


@pytest.mark.parametrize("name", list(eight_bits.BUILDERS))
def test_a_peer_in_eight_bits_writes_nearly_what_is_served(tiny: Artifact, name: str) -> None:
    if reasons := absent([name]):
        pytest.skip(reasons[name])
    task = task_of(tiny, steps=60)
    exact, rounded = BUILDERS["served"](task, 1).run(), eight_bits.BUILDERS[name](task, 1).run()
    assert agreed_steps(exact, rounded, 0.0) > 5


def test_every_product_of_the_eager_peer_is_in_eight_bits(tiny: Artifact) -> None:
    eager = eight_bits.BUILDERS["eager-int8"](task_of(tiny, steps=2), 1)
    with profile() as profiler:
        eager.run()
    counts = Counter(event.name for event in profiler.events())
    # W_x x, W_h h and the read-out, in each of two steps.
    assert counts["quantized::linear_dynamic"] == 6
    assert not counts["aten::linear"]


@pytest.mark.parametrize("name", ["loop", "eager", "torchscript"])
def test_a_side_writes_the_points_that_are_served(inks: Path, name: str) -> None:
    task = task_of(load_artifact(inks / "scrawl"))
    sides = {side: BUILDERS[side](task, 1) for side in ("served", name)}
    assert task.tolerance > 0
    assert "parts from served" not in verified(task, sides)[name].note


def test_a_side_that_writes_other_bytes_fails_the_comparison(tiny: Artifact) -> None:
    task = task_of(tiny)
    same = np.zeros(STEPS, np.int64)
    early = same.copy()
    early[50] = 1
    sides = {"served": Side(writes(same)), "other": Side(writes(early))}
    with pytest.raises(
        AssertionError, match="other writes something else than served from step 50"
    ):
        verified(task, sides)


def test_a_side_that_writes_fewer_bytes_fails_the_comparison(tiny: Artifact) -> None:
    same = np.zeros(STEPS, np.int64)
    sides = {"served": Side(writes(same)), "short": Side(writes(same[1:]))}
    with pytest.raises(AssertionError, match="199"):
        verified(task_of(tiny), sides)


def test_a_byte_that_rounding_moved_late_is_told(tiny: Artifact) -> None:
    same = np.zeros(STEPS, np.int64)
    late = same.copy()
    late[100:] = 1
    sides = {"served": Side(writes(same)), "other": Side(writes(late), "a note")}
    found = verified(task_of(tiny), sides)
    assert found["other"].note == "a note; parts from served at step 100"


def test_a_variant_may_write_other_bytes_but_as_many(tiny: Artifact) -> None:
    same = np.zeros(STEPS, np.int64)
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


def test_the_floor_of_a_task_reads_its_weights_as_often_as_it_has_steps(
    tiny: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    monkeypatch.setattr(floor, "_READERS", {"counted": lambda buffer: read.append(buffer.nbytes)})
    task = task_of(tiny, steps=70)
    reading = BUILDERS["floor"](task, 1)
    read.clear()
    reading.run()
    model = load_model(tiny.folder, tiny.manifest)
    assert read == [floor.weight_bytes(model)] * 70
    assert reading.check == "nothing"


@pytest.mark.parametrize("name", ["served", "loop"])
def test_a_session_has_as_many_threads_as_it_is_told_of(
    tiny: Artifact, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    asked = []

    def runtime(provider: Any, runner: Any, threads: int, slots: int) -> Runtime:
        asked.append(threads)
        return Runtime(provider, runner, threads, slots)

    monkeypatch.setattr(sides, "Runtime", runtime)
    BUILDERS[name](task_of(tiny, steps=2), 2)
    assert asked == [2]


def test_pytorch_has_as_many_threads_as_the_row_tells(
    tiny: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    (row,) = compare_sides(tiny, 2, 1, ["served"], {})
    assert asked[0] == row.threads == 2


def test_a_line_takes_the_median_of_lines_each_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch, inks: Path
) -> None:
    monkeypatch.setattr(line, "ARTIFACT", inks / "scrawl")
    moments = iter([0.0, 9.0, 10.0, 11.0, 20.0, 22.0, 30.0, 31.0])
    monkeypatch.setattr(line, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    told = line.measure(1, repeats=3)
    assert (told.characters, told.threads, told.ms_median) == (30, 1, 2000.0)
    assert line.measure(1, repeats=1).points == told.points


def test_a_measurement_has_a_row_per_side_and_variant(
    tiny: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = list[Artifact]()

    def noted(task: sides.Task, threads: int) -> Side:
        of.append(task.artifact)
        return sides.served(task, threads)

    monkeypatch.setattr(step, "SETTLE_S", 0.0)
    monkeypatch.setattr(step, "served", noted)
    variant = replace(tiny)
    rows = compare_sides(tiny, 1, 2, ["floor", "served"], {"folded": variant})
    assert [id(artifact) for artifact in of] == [id(variant)]  # the files of no other
    assert [r.side for r in rows] == ["served", "floor", "folded"]
    assert all(r.us_median > 0 and r.model == "lstm-16" for r in rows)


def test_a_random_model_can_be_converted_as_a_variant_is(tiny: Artifact) -> None:
    model, facts = read_source(tiny.folder)
    assert (model.readout.in_features, facts["data"]["name"]) == (16, "random")


@pytest.mark.long
def test_a_section_has_rows_and_goals(monkeypatch: pytest.MonkeyPatch, inks: Path) -> None:
    """A random model and the shipped ones, each side by side."""
    monkeypatch.setattr(step, "ARTIFACTS", inks)
    monkeypatch.setattr(step, "SHIPPED", ("scrawl", "missing"))
    monkeypatch.setattr(step, "SETTLE_S", 0.0)
    monkeypatch.setattr(step, "thread_counts", lambda: [1])
    monkeypatch.setattr(line, "ARTIFACT", inks / "scrawl")
    monkeypatch.setattr(eight_bits, "BUILDERS", {})
    plan = Plan((16,), ("served", "floor"), rounds=2, varied=("lstm-16",))
    found = list(measure(False, plan))
    goals = [each for each in found if isinstance(each, Goal)]
    tables = [each for each in found if not isinstance(each, Goal)]
    assert [(name, row.model, row.side) for name, row in tables[:-1]] == [
        *(("step", "lstm-16", side) for side in ("served", "floor", "folded", "quantized")),
        *(("step", "scrawl", side) for side in ("served", "floor")),
    ]
    name, written = tables[-1]
    assert (name, written.characters) == ("line", 30)
    assert written.ms_median > 0 < written.points
    assert len(goals) == 10


def test_a_task_is_drawn_freely_with_one_row(tiny: Artifact) -> None:
    task = task_of(tiny, steps=3)
    assert (task.steps, task.writes, task.tolerance) == (3, "next", 0.0)
    assert not task.columns["force"].any()
    shapes = {name: array.shape for name, array in task.columns.items()}
    assert shapes == {"forced": (3, 1), "force": (3, 1), "uniform": (3, 1)}
    assert task.row["logit_bias"].shape == (1, 256)


def test_every_plan_names_sides_that_exist() -> None:
    for plan in (QUICK, FULL):
        assert isinstance(plan, Plan)
        assert set(plan.sides) <= set(BUILDERS)
    assert {"eager", "compile", "openvino", "floor"} <= set(QUICK.sides)  # of which there are goals
    assert {"lstm-512", "lstm-1024"} <= set(FULL.varied)  # of whose variants there are goals
    assert "shakespeare" in FULL.varied  # the one that people see


def test_variants_are_the_folded_artifact_and_that_in_eight_bits_which_is_folded_too(
    tiny: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = dict[Path, dict[str, bool]]()
    monkeypatch.setattr(step, "convert", lambda _, place, **how: written.update({place: how}))
    monkeypatch.setattr(step, "load_artifact", written.get)
    how = {"folded": {"fold": True}, "quantized": {"fold": True, "quantize": True}}
    assert step._variants(tiny, tmp_path) == how


def test_a_side_is_left_out_with_all_that_it_needs_and_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    missing = absent([*BUILDERS, *eight_bits.BUILDERS])
    assert list(missing) == ["openvino", "openvino-int8"]
    assert "not installed: openvino (role" in missing["openvino"]
    assert "not installed: openvino, nncf (role" in missing["openvino-int8"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "nncf" else name)
    assert "not installed: nncf (role" in absent(missing)["openvino-int8"]
    assert list(absent(missing)) == ["openvino-int8"]


def test_openvino_has_as_many_threads_as_the_row_tells(
    tiny: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without OpenVINO: a process that had it compile for two ended with a segmentation fault at
    the next SIGINT that another test sent."""
    asked: list[dict[str, Any]] = []
    shaped: list[dict[str, list[int]]] = []
    shapes = {port.name: [1, *port.shape] for port in tiny.manifest.ports.state}
    names = [SimpleNamespace(get_any_name=partial(str, name)) for name in shapes]
    model = SimpleNamespace(inputs=names, reshape=shaped.append)

    def compiled(given: object, device: str, settings: dict[str, Any]) -> SimpleNamespace:
        assert (given, device) == (model, "CPU")
        asked.append(settings)
        return SimpleNamespace(create_infer_request=SimpleNamespace)

    core = SimpleNamespace(read_model=lambda path: path, compile_model=compiled)
    monkeypatch.setitem(sys.modules, "openvino", SimpleNamespace(Core=lambda: core))
    for threads in (1, 2):
        sides._openvino_requests(task_of(tiny, steps=2), threads, lambda path: model)
    told = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}  # as its note has it
    assert asked == [told | {"INFERENCE_NUM_THREADS": threads} for threads in (1, 2)]
    assert shaped == [shapes] * 2  # compiled for a batch of 1, as its note has it


def test_no_side_has_more_to_do_than_the_one_that_is_served(
    tiny: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Usual options leave the filters of the sampler out, of each."""
    filtered = list[bool]()
    kind, run = sides.KINDS[tiny.manifest.kind], sides.ScanRunner.run

    def stepped(model: nn.Module, *, filtered: bool, of: Any = kind.step) -> Any:
        seen.append(filtered)
        return of(model, filtered=filtered)

    def ran(*given: Any, filtered: bool) -> Any:
        seen.append(filtered)
        return run(*given, filtered=filtered)

    seen = filtered
    patched = SimpleNamespace(step=stepped, sample=kind.sample)
    monkeypatch.setattr(sides, "KINDS", {tiny.manifest.kind: patched})
    monkeypatch.setattr(sides.ScanRunner, "run", ran)
    task = task_of(tiny, steps=33)
    sides.served(task, 1).run()
    sides.eager(task, 1)
    assert seen == [False] * 3  # two chunks


def test_every_side_and_variant_has_as_many_threads_as_the_row_tells(
    tiny: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[str, int]]()

    def builder(name: str) -> Callable[[Any, int], Side]:
        def build(task: Any, threads: int) -> Side:
            asked.append((name, threads))
            return Side(writes(np.zeros(STEPS)))

        return build

    monkeypatch.setattr(step, "_BUILDERS", {name: builder(name) for name in ("served", "eager")})
    monkeypatch.setattr(step, "served", builder("variant"))
    monkeypatch.setattr(step, "compare", lambda *_: [])
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    compare_sides(tiny, 3, 1, ["eager"], {"folded": tiny})
    assert asked == [("served", 3), ("eager", 3), ("variant", 3)]
