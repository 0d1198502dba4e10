"""The verbs of tasks: `python -m lab list | TASK | all | export TASK`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from contract.files import require_writable
from export.results import write_json
from lab import experiment
from lab.paper import RESULTS, range_of_seeds
from lab.plan import Plan, read_plans
from service.engine.threads import usable_cores
from training.command import positive
from training.run import alone, data_folder

_MOST_WORKERS = 2  # what budgets are told for
QUICK = Path("runs", "lab-quick")  # runs and, unless told, results of `--quick`


def add_verbs(commands: Any) -> None:
    """Put the verbs into a command line's group of commands."""
    lister = commands.add_parser("list", help="list the paper's tasks, their norms and budgets")
    lister.set_defaults(command=_list)
    for name in experiment.names():
        one = commands.add_parser(name, help=f"train the task {name} with every norm")
        one.set_defaults(command=_one, task=name)
        _add_options(one)
        one.add_argument("--norm", help="these alone, separated by commas")
    every = commands.add_parser("all", help="every task; goes on where it was interrupted")
    every.set_defaults(command=_all)
    _add_options(every)
    export = commands.add_parser(
        "export", help="convert a trained task and compare with training; 1 if they differ"
    )
    export.add_argument("task", choices=experiment.names())
    export.add_argument("--case", help="which of the task's cases (the first)")
    export.add_argument("--norm", help="the norm it was trained with (the task's first)")
    export.add_argument("--seed", type=int, default=0)
    export.add_argument("--quick", action="store_true", help="what --quick has trained")
    export.add_argument(
        "--out", type=Path, help="folder to write (runs/lab-exported/TASK/CASE/NORM-seed-SEED)"
    )
    export.set_defaults(command=_export)


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seeds", type=positive, help="how many (what the recipe says)")
    command.add_argument(
        "--quick", action="store_true", help="some seconds, on data that needs no download"
    )
    command.add_argument(
        "--out", type=Path, help=f"folder of the results ({RESULTS}; of a part, with the runs)"
    )


def _list(options: argparse.Namespace) -> None:
    total = 0.0
    for name in experiment.names():
        one = experiment.load(name)
        minutes = sum(plan.budget.minutes for plan in read_plans(one))
        total += minutes
        print(f"{name:10}{one.title}; {one.paper}; {', '.join(one.norms)}; {minutes:g} min")
    print(f"{'':10}all: {total:g} min on two cores")


def _one(options: argparse.Namespace) -> None:
    # A norm named twice would be trained by two processes in one folder.
    norms = list(dict.fromkeys(options.norm.split(","))) if options.norm else None
    options.goes_on = not options.quick  # which begins anew each time
    run_task(options.task, norms, options.seeds, options.out, options.told, quick=options.quick)


def _all(options: argparse.Namespace) -> None:
    options.goes_on = not options.quick
    for name in experiment.names():
        run_task(name, None, options.seeds, options.out, options.told, quick=options.quick)


def run_task(
    name: str,
    norms: list[str] | None,
    seeds: int | None,
    out: Path | None,
    command: str,
    *,
    quick: bool,
) -> None:
    """Train what is missing, then write results and pictures, and by what `command` they came.
    Those of `--quick` show nothing and stay with its runs, and so do those of a part, unless told.

    Raises `ValueError` for a norm the task has not, data that are missing, and where the task is
    being trained already."""
    from lab.jobs import forget

    one = experiment.load(name)
    if unknown := sorted(set(norms or ()) - set(one.norms)):
        raise ValueError(f"--norm is {', '.join(unknown)}; {name} has {', '.join(one.norms)}")
    plans = read_plans(one, quick=quick)
    source, runs = _places(plans[0], quick=quick)
    out = out or (runs if quick or norms or seeds else RESULTS)
    require_writable(out)
    with alone(runs / name):
        if quick:
            forget(one, runs)  # never where someone points
        _compare(one, plans, norms or one.norms, seeds, source, runs, out, command)
    print(f"written to {out / name}.json and .png")


def _compare(
    one: experiment.Experiment[Any],
    plans: Sequence[Plan],
    norms: Sequence[str],
    seeds: int | None,
    source: Path | None,
    runs: Path,
    out: Path,
    command: str,
) -> None:
    from lab.compare import Laboratory
    from lab.curves import plot
    from lab.jobs import carry_out
    from lab.outcome import outcome

    torch.set_num_threads(1)  # more of them would wait for each other
    workers = 1 if source is None else min(_MOST_WORKERS, usable_cores())
    found = carry_out(one, plans, norms, seeds, source, runs, workers)
    content = outcome(one, command, found)
    write_json(out / f"{one.name}.json", content)
    plot(content, out / f"{one.name}.png")
    if one.draws:
        plan, contenders = next(iter(found.values()))
        laboratory = Laboratory(one, plan, source, runs)
        one.picture(laboratory.trained(contenders[0].norm, 0), out)
    print_outcome(content)


def print_outcome(content: dict[str, Any]) -> None:
    """Each norm's test figures, and how soon it was where no normalisation got at best."""
    for case, result in content["cases"].items():
        print(f"\n{content['task']} {case}".rstrip())
        for norm, found in result["norms"].items():
            figures = ", ".join(f"{name} {_figure(told)}" for name, told in found["test"].items())
            soon = found["updates_to_best_of_none"]
            ratio = "" if soon is None or soon["ratio"] is None else f"; ratio {soon['ratio']}"
            print(f"  {norm:18}rate {found['rate']:g}: {figures}{ratio}")


def _figure(told: dict[str, Any]) -> str:
    """Of the seeds: their median, their range, and how many have none."""
    middle = "diverged" if told["median"] is None else str(told["median"])
    return f"{middle} ({range_of_seeds(told)})" if told["range"] else middle


def _places(plan: Plan, *, quick: bool) -> tuple[Path | None, Path]:
    """The data of a plan, None where they are drawn, and the folder of all runs."""
    from lab.compare import RUNS

    if quick:
        return None, QUICK
    source = data_folder() / plan.recipe.data.source
    if not source.exists():
        raise ValueError(
            f"{source} does not exist; set EVENKEEL_DATA to the folder of the data, or use --quick"
        )
    return source, RUNS


def _export(options: argparse.Namespace) -> int:
    from lab.compare import Laboratory
    from lab.export import export

    one = experiment.load(options.task)
    plans = {plan.case: plan for plan in read_plans(one, quick=options.quick)}
    case = next(iter(plans)) if options.case is None else options.case
    if case not in plans:
        raise ValueError(f"--case is {case!r}; {one.name} has {', '.join(plans)}")
    source, runs = _places(plans[case], quick=options.quick)
    laboratory = Laboratory(one, plans[case], source, runs)
    norm = options.norm or one.norms[0]
    if norm not in one.norms:
        raise ValueError(f"--norm is {norm!r}; {one.name} has {', '.join(one.norms)}")
    run = laboratory.folder / laboratory.name(norm, options.seed)
    out = options.out or runs.with_name(f"{runs.name}-exported") / run.relative_to(runs)
    which = norm, options.seed
    report = export(one, laboratory.trained(*which), laboratory.recipe(*which), out)
    for finding in report:
        print(finding.line())
    print(f"written to {out}")
    return 0 if all(finding.holds for finding in report) else 1
