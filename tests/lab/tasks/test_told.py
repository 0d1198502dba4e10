"""What a comparison tells of its runs, where it writes that, and with what it carries them out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab import command as task_commands
from lab import experiment, jobs, paper
from lab.__main__ import main
from lab.compare import Laboratory
from lab.experiment import LabTask, Metric
from lab.outcome import outcome
from lab.plan import read_plans
from tests.lab.tasks.toy import RECIPE, Line, asked_for, stand_in
from training import checkpoint


@pytest.fixture(autouse=True)
def _line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch)


def test_results_tell_every_metric_of_a_task() -> None:
    metrics = tuple(Metric(name=name, label=name) for name in ("off", "near"))
    one: Any = SimpleNamespace(name="line", title="a", paper="b", claim="c", metrics=metrics)
    told = outcome(one, "as typed", {})
    assert [metric["name"] for metric in told["metrics"]] == ["off", "near"]
    assert [told[key] for key in ("task", "title", "paper", "claim")] == ["line", "a", "b", "c"]


def test_figures_of_the_test_are_printed_with_their_range_and_how_soon(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figure = {"median": 2.0, "range": [1.0, 3.0], "seeds": [1.0, 2.0, 3.0]}
    lost = {"median": None, "range": None, "seeds": [None] * 3}
    some = {"median": 3.0, "range": [1.0, 3.0], "seeds": [1.0, None, 3.0]}
    most = {"median": None, "range": [1.0, 1.0], "seeds": [None, 1.0, None]}
    soon = {"updates": 40, "ratio": 0.5, "ratio_of_seeds": [0.5]}
    norms = {
        "layer": {"rate": 0.03, "test": {"off": figure}, "updates_to_best_of_none": soon},
        "none": {"rate": 0.1, "test": {"off": lost}, "updates_to_best_of_none": None},
        "batch": {"rate": 0.1, "test": {"off": some}, "updates_to_best_of_none": None},
        "weight": {"rate": 0.1, "test": {"off": most}, "updates_to_best_of_none": None},
    }
    task_commands.print_outcome({"task": "line", "cases": {"plain": {"norms": norms}}})
    head, layer, none, batch, weight = capsys.readouterr().out.split("\n")[1:6]
    assert head == "line plain"
    assert layer.split(": ")[1] == "off 2.0 (1.0 to 3.0); ratio 0.5"
    assert none.split() == ["none", "rate", "0.1:", "off", "diverged"]
    assert batch.split(": ")[1] == "off 3.0 (1.0 to 3.0, 1 of 3 diverged)"
    assert weight.split(": ")[1] == "off diverged (1.0 to 1.0, 2 of 3 diverged)"


def test_the_table_of_the_paper_tells_how_many_seeds_diverged() -> None:
    """The range of those that are left would else pass for all."""
    some = {"median": 3.0, "range": [1.0, 3.0], "seeds": [1.0, None, 3.0]}
    most = {"median": None, "range": [1.0, 1.0], "seeds": [None, 1.0, None]}
    lost = {"median": None, "range": None, "seeds": [None] * 3}
    told = [paper._end({"test": {"nats": found}}, "nats") for found in (some, most, lost)]
    assert told == ["3 nats (1 to 3, 1 of 3 diverged)", "- nats (1 to 1, 2 of 3 diverged)", "-"]


@pytest.mark.parametrize(
    "said",
    [
        ["line", "--norm", "layer"], ["line", "--seeds", "1"], ["line", "--quick"],
        ["all", "--seeds", "1"], ["all", "--quick"],
    ],
)  # fmt: skip
def test_results_of_a_part_stay_with_its_runs(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(task_commands, "_compare", lambda *given: asked.append(given))
    assert main(said) == 0
    ((_, _, norms, seeds, source, runs, out, _),) = asked
    assert norms == (["layer"] if "--norm" in said else Line.norms)
    assert seeds == (1 if "--seeds" in said else None)
    quick = "--quick" in said
    assert runs == out == Path("runs", "lab-quick" if quick else "lab")
    assert (source is None) is quick


def test_processes_are_as_many_as_cores_and_two_at_most_and_what_is_quick_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Enough(Exception): ...

    def carry_out(*given: Any) -> None:
        workers.append(given[-1])
        raise Enough

    workers: list[int] = []
    monkeypatch.setattr(task_commands, "_MOST_WORKERS", 2)
    monkeypatch.setattr(jobs, "carry_out", carry_out)
    one = Line()
    for source, cores in ((None, 8), (Path(), 8), (Path(), 1)):
        monkeypatch.setattr(task_commands, "usable_cores", lambda cores=cores: cores)
        with pytest.raises(Enough):
            task_commands._compare(
                one, read_plans(one), one.norms, 1, source, Path(), Path(), "as typed"
            )
    assert workers == [1, 2, 1]


def test_a_picture_is_of_the_first_norm_and_seed_and_each_run_has_its_own_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = RECIPE.replace("rates = [3e-2, 1e-1]", "rates = [1e-1]").replace("[quick.longer]", "")
    few = few.replace('[cases.longer]\n"training.epochs" = 6\n', "").partition(
        '"training.epochs" = 3'
    )
    (experiment.TASKS / "line" / "recipe.toml").write_text(few[0])
    drawn: list[LabTask] = []
    asked = asked_for(monkeypatch)
    monkeypatch.setattr(Line, "picture", lambda _, task, folder: drawn.append(task))
    assert main(["line", "--quick"]) == 0
    folder = Path("runs", "lab-quick", "line", "plain")
    weights = {path.parent.name: checkpoint.load(path)[0]["weight"].item()
               for path in folder.glob("*/weights.safetensors")}  # fmt: skip
    assert weights.keys() == {f"{norm}-seed-{seed}" for norm in Line.norms for seed in (0, 1)}
    assert asked == [("layer", 0)]
    (task,) = drawn
    assert task.model.get_parameter("weight").item() == weights["layer-seed-0"]
    (plan,) = read_plans(Line(), quick=True)
    laboratory = Laboratory(Line(), plan, None, Path("runs", "lab-quick"))
    other = laboratory.trained("none", 1).model.get_parameter("weight").item()
    assert other == weights["none-seed-1"] != weights["none-seed-0"]
    laboratory.run(plan.sweep("none", 0.1), "none-sweep-0.1")  # or it would be of another recipe


def test_a_case_has_none_of_the_settings_of_the_one_before() -> None:
    path = experiment.TASKS / "line" / "recipe.toml"
    first = RECIPE.replace("[cases.plain]", '[cases.plain]\n"training.epochs" = 9')
    path.write_text(first.replace('"training.epochs" = 6', '"lab.minutes" = 2'))
    plain, longer = read_plans(Line())
    assert (plain.recipe.training.epochs, longer.recipe.training.epochs) == (9, 4)
    assert (plain.budget.minutes, longer.budget.minutes) == (1, 2)
    path.write_text(first.replace('"training.epochs"', '"epochs"'))
    with pytest.raises(ValueError, match=r"line: setting 'epochs'; it must be a table\.key"):
        read_plans(Line())


def test_the_shortest_sweep_warms_up_for_an_update() -> None:
    plan = read_plans(Line())[0]
    assert plan.recipe.training.warmup_updates == 1
    assert plan.sweep("layer", 0.1).training.warmup_updates == 1
