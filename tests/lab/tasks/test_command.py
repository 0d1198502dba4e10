"""The verbs of tasks, and what they promise of seeds, budgets and exit codes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contract.manifest import Finding
from lab import __main__ as lab_commands
from lab import command as task_commands
from lab import experiment
from lab.__main__ import main
from lab.compare import Laboratory
from lab.plan import SWEEP_SEED, read_plans
from tests.lab.tasks.toy import RECIPE, Line, LineTask, asked_for, stand_in


@pytest.fixture(autouse=True)
def _line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch)


def test_quick_runs_are_made_anew_each_time() -> None:
    assert main(["line", "--quick"]) == 0
    once = LineTask.updates_done
    assert main(["line", "--quick"]) == 0
    assert LineTask.updates_done == 2 * once > 0


@pytest.mark.parametrize("command", ["line", "all"])
@pytest.mark.parametrize("more", [[], ["--quick"]])
def test_what_is_made_anew_each_time_is_not_said_to_go_on(
    command: str,
    more: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(task_commands, "run_task", interrupted)
    assert main([command, *more]) == 130
    assert ("the same command goes on" in capsys.readouterr().err) is not bool(more)


def test_a_task_of_one_comparison_has_its_runs_and_exports_in_no_folder_of_a_case() -> None:
    recipe, _, quick = RECIPE.partition("[cases.plain]")
    one = recipe + quick[quick.index("[quick]") : quick.index("[quick.longer]")]
    Path("tasks", "line", "recipe.toml").write_text(one, "utf-8")
    assert main(["line", "--quick"]) == 0
    result = json.loads(Path("runs/lab-quick/line.json").read_text(encoding="utf-8"))
    assert list(result["cases"]) == [""]
    assert main(["export", "line", "--quick"]) == 0
    (made,) = Path("runs").rglob("manifest.json")
    assert str(made.parent) == "runs/lab-quick-exported/line/layer-seed-0"


def test_a_norm_named_twice_is_trained_once() -> None:
    assert main(["line", "--norm", "layer,layer", "--seeds", "1"]) == 0
    result = json.loads(Path("runs/lab/line.json").read_text(encoding="utf-8"))
    assert result["command"] == "python -m lab line --norm layer,layer --seeds 1"
    assert list(result["cases"]["plain"]["norms"]) == ["layer"]


def test_results_say_what_was_asked_for_with_every_option() -> None:
    assert main(["line", "--quick", "--norm", "none", "--out", "my results"]) == 0
    result = json.loads(Path("my results", "line.json").read_text(encoding="utf-8"))
    assert result["command"] == "python -m lab line --quick --norm none --out 'my results'"
    assert main(["all", "--quick"]) == 0
    result = json.loads(Path("runs/lab-quick/line.json").read_text(encoding="utf-8"))
    assert result["command"] == "python -m lab all --quick"


@pytest.mark.parametrize("command", [["line"], ["line", "--quick"], ["norms"], ["race"]])
def test_where_no_result_can_be_written_nothing_is_trained(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab_commands, "carry_out", lambda *_: pytest.fail("it has begun"))
    Path("file").touch()
    assert main([*command, "--out", "file/results"]) == 1
    assert "file is no folder" in capsys.readouterr().err
    assert LineTask.updates_done == 0


@pytest.mark.parametrize("more", [[], ["--quick"]])
def test_of_two_that_train_a_task_at_once_the_second_is_refused(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each would log into the runs of the other, and a quick one remove them."""
    whole = LineTask.validate

    def beside_another(task: LineTask) -> float:
        monkeypatch.setattr(LineTask, "validate", whole)
        assert main(["line", *more]) == 1
        return whole(task)

    monkeypatch.setattr(LineTask, "validate", beside_another)
    assert main(["line", *more]) == 0
    assert main(["line", *more]) == 0, "the next is alone again"
    folder = Path("runs", "lab-quick" if more else "lab", "line")
    assert f"{folder}: another training is at work there" in capsys.readouterr().err


def test_an_export_says_how_that_run_was_trained() -> None:
    assert main(["line"]) == 0
    assert main(["export", "line", "--norm", "none", "--seed", "1", "--out", "made"]) == 0
    recipe = json.loads(Path("made", "manifest.json").read_text(encoding="utf-8"))["recipe"]
    assert recipe["model"]["norm"] == "none"
    assert (recipe["training"]["seed"], recipe["training"]["learning_rate"]) == (1, 1.0)


def test_the_seed_that_is_exported_is_the_one_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exported = asked_for(monkeypatch)
    assert main(["line"]) == 0
    assert main(["export", "line", "--norm", "none", "--seed", "1"]) == 0
    assert exported == [("none", 1)]


@pytest.mark.parametrize(("values", "code"), [((0, 0), 0), ((0, 2), 1)])
def test_an_export_that_is_not_what_was_trained_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, values: tuple[float, ...], code: int
) -> None:
    report = [Finding(name="any", value=value, bound=1, detail="") for value in values]
    monkeypatch.setattr("lab.export.export", lambda *_: report)
    assert main(["line"]) == 0
    assert main(["export", "line"]) == code


def test_no_run_ends_because_it_gets_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = read_plans(Line())[0]
    training = replace(plan.recipe.training, patience_epochs=1)
    plan = replace(plan, recipe=replace(plan.recipe, training=training))
    monkeypatch.setattr(LineTask, "validate", lambda self: LineTask.updates_done)
    monkeypatch.setattr(LineTask, "test", lambda self: {"off": 0.0})
    monkeypatch.setattr(LineTask, "figures", {"off": 0.0}, raising=False)
    found = Laboratory(Line(), plan, None, Path("runs")).run(plan.full("layer", 0.1, 0), "a")
    assert found.updates == 16


def test_rates_are_compared_with_a_seed_of_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for name in experiment.names():
        for plan in read_plans(experiment.load(name)):
            assert SWEEP_SEED not in range(plan.budget.seeds)
            assert plan.sweep("layer", 1e-3).training.seed == SWEEP_SEED
