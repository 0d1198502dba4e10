"""What holds of every task of the laboratory, whoever adds one: `--quick` and its export."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from contract.manifest import MANIFEST, sha256
from lab import experiment
from lab.compare import Laboratory
from lab.export import count_layer_norms, export, trained
from lab.plan import SWEEP_SEED, Plan, read_plans

_ROOT = Path(__file__).parents[3]
_TASKS = experiment.names()


@pytest.mark.parametrize("name", _TASKS)
def test_a_task_says_what_the_paper_did_and_keeps_to_a_budget(name: str) -> None:
    one = experiment.load(name)
    assert one.name == name
    assert (experiment.TASKS / name / "README.md").read_text().startswith(f"# {name}\n")
    assert "layer" in one.norms
    assert "none" in one.norms
    for plan in read_plans(one):
        assert plan.budget.seeds == 3
        full = [plan.full(norm, 0.1, 0) for norm in one.norms]
        assert {(run.training, run.batch) for run in full} == {(full[0].training, full[0].batch)}
        assert [run.model.norm for run in full] == list(one.norms)
        assert {plan.sweep(norm, 0.1).training.seed for norm in one.norms} == {SWEEP_SEED}


@pytest.mark.parametrize("name", _TASKS)
def test_a_task_is_told_beside_the_paper_and_has_tests_of_its_own(name: str) -> None:
    guide = (experiment.TASKS / name / "README.md").read_text()
    assert all(f"**{part}**" in guide for part in ("The paper", "Here", "Data"))
    assert re.search(r"^\*\*(Came|What came) out\*\*", guide, re.M)
    paper = (_ROOT / "docs" / "paper.md").read_text()
    assert re.search(rf"^- .*`{name}`.*:", paper, re.M)
    assert f"(../lab/tasks/{name}/README.md)" in paper
    told = json.loads((_ROOT / "docs" / "results" / "lab" / f"{name}.json").read_text("utf-8"))
    norms = [list(case["norms"]) for case in told["cases"].values()]
    assert norms == [list(experiment.load(name).norms)] * len(norms)
    assert told["metrics"] == [asdict(metric) for metric in experiment.load(name).metrics]
    assert re.search(rf"\(results/lab/{name}[\w-]*\.png\)", paper)
    assert (_ROOT / "tests" / "lab" / "tasks" / f"test_{name}.py").is_file()


def test_findings_are_counted_over_all_tasks() -> None:
    number = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    for page in ("README.md", "docs/paper.md"):
        told = re.findall(r"out\W+in \w+ of (?:these )?(\w+)", (_ROOT / page).read_text())
        assert told == [number[len(_TASKS)]], page


def test_all_tasks_together_take_at_most_three_hours() -> None:
    plans = [plan for name in _TASKS for plan in read_plans(experiment.load(name))]
    assert sum(plan.budget.minutes for plan in plans) <= 180


@pytest.mark.parametrize("name", _TASKS)
def test_a_quick_run_has_every_metric_at_every_validation(
    name: str, laboratory: Callable[[str, str], Laboratory]
) -> None:
    found = laboratory(name, "layer")
    run = found.compete("layer", 1).runs[0]
    metrics = {metric.name for metric in found.experiment.metrics}
    assert all(metrics <= row.keys() for row in run.validations)
    assert metrics <= run.test.keys()
    assert run.data.keys() >= {"name", "sha256"}


@cache
def _quick(name: str) -> tuple[experiment.Experiment[Any], Plan, Any]:
    """A task, the plan of its first case and its data, at `--quick`."""
    one = experiment.load(name)
    plan = read_plans(one, quick=True)[0]
    return one, plan, one.data(plan.recipe, None)


@pytest.mark.parametrize("name", _TASKS)
def test_what_is_exported_is_given_all_it_takes_and_compared_in_what_it_gives(name: str) -> None:
    one, plan, data = _quick(name)
    assert one.facts(data).keys() >= {"name", "sha256"}
    task: Any = one.task(plan.full("layer", 1e-2, 0), data)
    for part in one.parts(task):
        step = part.step(task.model)
        assert part.inputs.keys() == {port.name for port in (*step.step_ports, *step.row_ports)}
        assert bool(step.step_ports) is part.scan
        given = {port.name for port in step.output_ports}
        given |= {f"{port.name}_after" for port in step.state_ports}
        found = trained(part, task.model, torch.float32)
        assert found
        assert found.keys() <= given


@pytest.mark.parametrize("name", _TASKS)
def test_runs_of_another_seed_see_other_batches_and_of_the_same_the_same(name: str) -> None:
    """Three seeds that saw one order would be one seed three times."""
    one, plan, data = _quick(name)
    first, other, again = (
        one.task(plan.full("layer", 1e-2, seed), data).batch(0)[0] for seed in (0, 1, 1)
    )
    assert all(map(torch.equal, other, again))
    assert not any(map(torch.equal, first, other))


@pytest.mark.parametrize("name", _TASKS)
def test_what_layer_norm_learned_is_exported_as_it_was_trained(
    name: str, laboratory: Callable[[str, str], Laboratory], tmp_path: Path
) -> None:
    found = laboratory(name, "layer")
    report = export(found.experiment, found.trained("layer", 0), found.plan.recipe, tmp_path / name)
    assert [finding.line() for finding in report if not finding.holds] == []
    graphs = list((tmp_path / name).glob("*.onnx"))
    assert sum(count_layer_norms(path) for path in graphs) > 0
    assert len(list((tmp_path / name).glob("model.safetensors"))) == 1
    manifest = json.loads((tmp_path / name / MANIFEST).read_text("utf-8"))
    assert [told["name"] for told in manifest["report"]] == [finding.name for finding in report]
    files = {path.name: sha256(path) for path in (tmp_path / name).iterdir()}
    assert manifest["files"] == {file: h for file, h in files.items() if file != MANIFEST}
    for graph in manifest["graphs"].values():
        assert bool(graph["ports"]["step"]) is graph["scan"]
        assert graph["scan"] or graph["ports"]["row"]


_WITH_BATCH_NORM = [name for name in _TASKS if "batch" in experiment.load(name).norms]


@pytest.mark.parametrize("name", _WITH_BATCH_NORM)
def test_a_network_is_judged_as_it_is_served_and_keeps_its_mode(name: str) -> None:
    """In training mode batch norm would judge a row by those beside it."""
    one = experiment.load(name)
    recipe = read_plans(one, quick=True)[0].full("batch", 1e-2, 0)
    task: Any = one.task(recipe, one.data(recipe, None))
    found = []
    for training in (True, False):
        task.model.train(training)
        found.append((task.validate(), task.figures, task.test()))
        assert task.model.training is training
    assert found[0] == found[1]


@pytest.mark.parametrize("name", _WITH_BATCH_NORM)
def test_what_batch_norm_learned_is_not_what_is_exported_and_the_report_says_so(
    name: str, laboratory: Callable[[str, str], Laboratory], tmp_path: Path
) -> None:
    found = laboratory(name, "batch")
    task = found.trained("batch", 0)
    report = export(found.experiment, task, found.plan.recipe, tmp_path / name)
    red = {finding.name.partition(", ")[2] for finding in report if not finding.holds}
    assert "structure" in red
    assert "bits" not in red  # what is served still does not depend on its neighbours
