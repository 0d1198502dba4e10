"""The frame of the laboratory's tasks: budgets, runs that are not repeated, exports, reports."""

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from lab import compare, curves, experiment, export, paper
from lab.__main__ import main
from lab.compare import Laboratory
from lab.curves import plot
from lab.experiment import Part
from lab.jobs import carry_out, forget
from lab.outcome import outcome
from lab.plan import read_plans
from tests.lab.tasks.toy import RECIPE, Line, LineTask, stand_in
from training.log import LOG
from training.loop import CHECKPOINT


@pytest.fixture(autouse=True)
def _line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    stand_in(tmp_path, monkeypatch)
    yield
    LineTask.fail_at = None


def test_every_norm_gets_the_same_updates_and_the_cost_of_the_sweep_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(curves, "plot", plot)
    assert main(["line"]) == 0
    content = json.loads(Path("docs/results/lab/line.json").read_text("utf-8"))
    for case, updates in (("plain", 16), ("longer", 24)):
        found = content["cases"][case]
        assert found["budget"]["rates"] == [3e-2, 1e-1]
        assert (found["budget"]["sweep_updates_each"], found["budget"]["full_updates_each"]) == (
            4,
            updates,
        )
        for norm in ("layer", "none"):
            validated = found["norms"][norm]["updates"]
            assert validated == list(range(4, updates + 1, 4))
            assert [len(curve) for curve in found["norms"][norm]["curves"]["off"]] == [
                len(validated)
            ] * 2
            # The best is the highest, twice: the sweep goes on to the end of the ladder.
            assert found["norms"][norm]["rate"] == 1.0
            assert list(found["norms"][norm]["rates"]) == ["0.03", "0.1", "0.3", "1"]
    # 2 cases, 2 norms: 4 rates of 4 updates, 2 seeds
    assert LineTask.updates_done == 2 * 2 * 4 * 4 + 2 * 2 * (16 + 24)
    assert 0 < Path("docs/results/lab/line.png").stat().st_size < 150_000


def test_what_is_finished_is_not_repeated_and_what_was_interrupted_goes_on() -> None:
    LineTask.fail_at = 10
    assert main(["line", "--norm", "layer", "--seeds", "1"]) == 130
    first = LineTask.updates_done
    assert first == 4 * 4 + 10
    LineTask.fail_at = None
    assert main(["line", "--norm", "layer", "--seeds", "1"]) == 0
    assert LineTask.updates_done - first == (16 - 10) + 4 * 4 + 24
    interrupted = json.loads(Path("runs/lab/line.json").read_text("utf-8"))
    assert interrupted["command"] == "python -m lab line --norm layer --seeds 1"
    again = LineTask.updates_done
    assert main(["line", "--norm", "layer", "--seeds", "1"]) == 0
    assert LineTask.updates_done == again
    forget(Line(), Path("runs", "lab"))
    assert main(["line", "--norm", "layer", "--seeds", "1"]) == 0
    assert not Path("docs").exists()  # which is of all norms and seeds
    whole = json.loads(Path("runs/lab/line.json").read_text("utf-8"))
    for case in ("plain", "longer"):
        mine, theirs = (c["cases"][case]["norms"]["layer"] for c in (interrupted, whole))
        assert (mine["curves"], mine["test"]) == (theirs["curves"], theirs["test"])


@pytest.mark.parametrize("writes", ["checkpoint", "write_json"])
def test_who_is_interrupted_as_a_result_is_written_loses_nothing(writes: str) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    plan = read_plans(Line())[0]
    laboratory = Laboratory(Line(), plan, None, Path("runs", "lab"))
    run = partial(laboratory.run, plan.full("layer", 0.1, 0), "layer-seed-0", keep=True)
    instead = interrupted if writes == "write_json" else SimpleNamespace(save=interrupted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, writes, instead)
        with pytest.raises(KeyboardInterrupt):
            run()
    trained = LineTask.updates_done
    run()
    assert LineTask.updates_done == trained  # before the result is there, its checkpoint stays
    assert laboratory.trained("layer", 0)  # the weights are there before the result


def test_who_is_killed_leaves_nothing_for_ever() -> None:
    plan = read_plans(Line())[0]
    laboratory = Laboratory(Line(), plan, None, Path("runs", "lab"))
    folder = laboratory.folder / "layer-seed-0"
    folder.mkdir(parents=True)
    for left in (".result.json.12", CHECKPOINT):  # as it is written, and once it is there
        (folder / left).touch()
        laboratory.run(plan.full("layer", 0.1, 0), "layer-seed-0")
        assert {file.name for file in folder.iterdir()} == {LOG, "result.json"}


def test_a_run_of_another_recipe_is_not_taken_for_this_one() -> None:
    one = Line()
    first = read_plans(one)[0]
    laboratory = Laboratory(one, first, None, Path("runs"))
    laboratory.run(first.full("layer", 0.1, 0), "a")
    with pytest.raises(ValueError, match="another recipe"):
        laboratory.run(first.full("layer", 0.2, 0), "a")
    again = Laboratory(one, first, None, Path("runs"))
    again.__dict__["facts"] = {"name": "points", "sha256": "1"}
    with pytest.raises(ValueError, match="another data"):
        again.run(first.full("layer", 0.1, 0), "a")


def test_a_run_of_another_recipe_is_not_exported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["line"]) == 0
    recipe = experiment.recipe_path("line")
    recipe.write_text(recipe.read_text().replace("average_decay = 0.0", "average_decay = 0.5"))
    assert main(["export", "line"]) == 1
    folder = Path("runs", "lab", "line", "plain", "layer-seed-0")
    assert f"{folder} is of a run with another recipe; remove it" in capsys.readouterr().err


def test_what_cannot_be_exported_is_told_with_what_can(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "line", "--norm", "nonsense"]) == 1
    assert "--norm is 'nonsense'; line has layer" in capsys.readouterr().err
    assert main(["export", "line", "--quick"]) == 1
    assert "by `python -m lab TASK`, with --quick where" in capsys.readouterr().err


def test_a_worker_reads_the_data_of_a_case_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(Line, "data", lambda _, recipe, source: read.append(recipe))
    one = Line()
    carry_out(one, read_plans(one), one.norms, 1, None, Path("reads"))
    assert [recipe.training.epochs for recipe in read] == [4, 6]


def test_quick_is_short_and_overwrites_no_results() -> None:
    assert main(["line", "--quick"]) == 0
    assert not Path("docs").exists()
    content = json.loads(Path("runs/lab-quick/line.json").read_text("utf-8"))
    updates = [content["cases"][c]["budget"]["full_updates_each"] for c in ("plain", "longer")]
    assert updates == [8, 12]


def test_quick_runs_leave_the_runs_of_a_folder_named_as_it_is(tmp_path: Path) -> None:
    kept = tmp_path / "line" / "plain" / "layer-seed-0" / "result.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    assert main(["line", "--quick", "--out", str(tmp_path)]) == 0
    assert kept.read_text() == "{}"
    assert (tmp_path / "line.json").exists()


def test_an_export_replaces_nothing_but_an_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["line", "--quick"]) == 0
    mine = tmp_path / "notes" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("years of work")
    command = ["export", "line", "--quick", "--out"]
    assert main([*command, str(mine.parent)]) == 1
    assert "is no export of a task" in capsys.readouterr().err
    assert mine.read_text() == "years of work"
    assert main([*command, str(tmp_path / "made")]) == 0
    assert main([*command, str(tmp_path / "made")]) == 0, "one of before is replaced"
    assert not list(tmp_path.glob(".exporting-*"))


def test_every_export_has_a_folder_of_its_own() -> None:
    assert main(["line"]) == 0
    assert main(["line", "--quick"]) == 0
    for more in ([], ["--case", "longer"], ["--norm", "none"], ["--seed", "1"], ["--quick"]):
        assert main(["export", "line", *more]) == 0
    made = {str(path.parent) for path in Path("runs").rglob("manifest.json")}
    assert made == {
        "runs/lab-exported/line/plain/layer-seed-0",
        "runs/lab-exported/line/longer/layer-seed-0",
        "runs/lab-exported/line/plain/none-seed-0",
        "runs/lab-exported/line/plain/layer-seed-1",
        "runs/lab-quick-exported/line/plain/layer-seed-0",
    }


def test_a_result_that_was_cut_short_is_named() -> None:
    one = Line()
    first, _ = read_plans(one)
    folder = Path("cut", "line", first.case, "a")
    folder.mkdir(parents=True)
    (folder / "result.json").write_text('{"recipe": ')
    with pytest.raises(ValueError, match=r"result\.json is cut short"):
        Laboratory(one, first, None, Path("cut")).run(first.full("layer", 0.1, 0), "a")


def test_a_seed_that_diverged_before_it_was_validated_has_no_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LineTask, "validate", lambda self: math.nan)
    monkeypatch.setattr(LineTask, "test", lambda self: {"off": 3.0, "near": -3.0})
    one = Line()
    first, _ = read_plans(one)
    found = Laboratory(one, first, None, Path("runs")).run(first.full("layer", 0.1, 0), "a")
    assert math.isnan(found.test["off"])
    assert math.isnan(found.test["near"])


def test_each_seed_begins_with_weights_of_its_own() -> None:
    first, _ = read_plans(Line())
    laboratory = Laboratory(Line(), first, None, Path("runs"))
    tasks = [laboratory._task(first.full("layer", 0.1, seed)) for seed in (0, 1, 0)]
    one, other, again = (task.model.get_parameter("weight") for task in tasks)
    assert one == again != other


def test_a_run_is_tested_with_its_best_weights_not_its_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights: list[float] = []

    def worse_each_time(task: LineTask) -> float:
        weights.append(task.model.weight.item())
        return float(len(weights))

    monkeypatch.setattr(LineTask, "validate", worse_each_time)
    monkeypatch.setattr(LineTask, "test", lambda task: {"off": task.model.weight.item()})
    first, _ = read_plans(Line())
    found = Laboratory(Line(), first, None, Path("runs")).run(first.full("layer", 0.1, 0), "a")
    assert found.test["off"] == weights[0] != weights[-1]


def test_no_run_ends_by_the_clock() -> None:
    plan = read_plans(Line())[0]
    training = replace(plan.recipe.training, time_limit_s=1.0)
    plan = replace(plan, recipe=replace(plan.recipe, training=training))
    for recipe in (plan.sweep("layer", 0.1), plan.full("layer", 0.1, 0)):
        assert recipe.training.time_limit_s is None


def test_what_is_not_a_number_is_a_broken_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Served:
        def __init__(self, *_: Any) -> None: ...

        def alone(self, _: Any) -> Any:
            return {"good": np.zeros(2), "bad": np.full(2, np.nan)}

    monkeypatch.setattr(export, "PartGraph", Served)
    part = Part(name="p", step=cast("Any", None), trained=lambda _, n: n, inputs={})
    truth = {"good": np.zeros(2), "bad": np.zeros(2)}
    assert not export.structure(part, torch.nn.Linear(1, 1), truth, Path("wide")).holds


def test_list_and_all_know_every_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "all: 2 min" in capsys.readouterr().out
    assert main(["all", "--quick"]) == 0
    assert Path("runs/lab-quick/line.json").exists()


def test_a_norm_a_task_has_not_and_data_that_is_missing_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["line", "--norm", "layer,group"]) == 1
    assert "group; line has layer, none" in capsys.readouterr().err
    monkeypatch.setenv("EVENKEEL_DATA", "nowhere")
    assert main(["line"]) == 1
    assert "set EVENKEEL_DATA" in capsys.readouterr().err


def test_a_recipe_may_not_say_what_nobody_reads() -> None:
    path = experiment.TASKS / "line" / "recipe.toml"
    path.write_text(RECIPE.replace("minutes", "hours"))
    with pytest.raises(ValueError, match=r"\[lab\]: unknown key hours"):
        read_plans(Line())


def test_a_sweep_is_the_full_run_in_small() -> None:
    plan = read_plans(Line())[0]
    training = replace(plan.recipe.training, warmup_updates=40)
    plan = replace(plan, recipe=replace(plan.recipe, training=training))
    sweep, full = plan.sweep("layer", 0.1).training, plan.full("layer", 0.1, 0).training
    assert sweep.warmup_updates / full.warmup_updates == sweep.epochs / full.epochs == 1 / 4


def test_a_rate_is_one_of_the_ladder() -> None:
    path = experiment.TASKS / "line" / "recipe.toml"
    path.write_text(RECIPE.replace("3e-2", "2e-2"))
    with pytest.raises(ValueError, match=r"lab\.rates has \[0\.02\]"):
        read_plans(Line())


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """The results of all runs."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        stand_in(Path(folder), patch)
        one = Line()
        found = carry_out(one, read_plans(one), one.norms, None, None)
        return outcome(one, "python -m lab line", found)


@pytest.fixture
def results(whole: dict[str, Any]) -> dict[str, Any]:
    """The same, to be changed."""
    return copy.deepcopy(whole)


def test_the_report_has_a_row_for_each_case_and_keeps_the_rest_of_the_page() -> None:
    assert main(["line"]) == 0
    page = Path("docs/paper.md")
    page.write_text(f"before\n{paper._BEGIN}\nold\n{paper._END}\nafter\n", encoding="utf-8")
    text = paper.page(Path())
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "`line`, plain" in text
    assert "`line`, longer" in text
    assert "All runs together took 0 minutes of one core, 0 of them for the sweeps." in text
    assert "0 of 4 sweeps have their best rate inside." in text  # the ladder ends there
    paper.write()
    assert paper.page(Path()) == page.read_text("utf-8")
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(ValueError, match="markers"):
        paper.page(Path())


def test_the_cost_is_the_sum_of_all_runs_and_a_sweep_without_an_end_is_counted(
    results: dict[str, Any],
) -> None:
    for case in results["cases"].values():
        case["budget"] |= {"sweep_seconds": 90.0, "full_seconds": 1710.0}
    results["cases"]["plain"]["norms"]["layer"] |= {"rate": 0.1}
    results["cases"]["plain"]["norms"]["none"] |= {"rate": 0.03}  # the lowest that was tried
    text = paper.summary([results])
    assert "took 60 minutes of one core, 3 of them" in text
    assert "1 of 4 sweeps" in text


def test_what_another_norm_needs_is_not_told_of_layer_norm(results: dict[str, Any]) -> None:
    for case in results["cases"].values():
        del case["norms"]["layer"]
    (row, _) = [line for line in paper.summary([results]).splitlines() if "`line`" in line]
    assert row.split(" | ")[2:4] == ["-", "-"]


def test_a_norm_that_never_gets_there_is_told_so(results: dict[str, Any]) -> None:
    case = results["cases"]["plain"]
    case["norms"]["layer"]["updates_to_best_of_none"] = {
        "updates": None,
        "ratio": None,
        "ratio_of_seeds": [None, 0.5],
    }
    text = paper.summary([results])
    assert "never there" in text
    assert "0.5 to 0.5, 1 of 2 never" in text


def test_a_curve_that_diverged_is_drawn_all_the_same(results: dict[str, Any]) -> None:
    curves = results["cases"]["plain"]["norms"]["none"]["curves"]["off"]
    curves[0] = [None] * len(curves[0])
    plot(results, Path("curves.png"))
    assert Path("curves.png").stat().st_size > 1000
