"""`python -m bench [--all] [--sections step,http,...] [--out FOLDER]`: measure beside peers, and
say of each goal whether it was met.

A quick run (`make bench`) takes up to ten minutes and writes docs/results/bench.json. With `--all`
(`make bench-all`) it takes some 30 and writes a file per section, and pictures, into
docs/results/bench as soon as the section ends. bench/README.md says how to read them.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from training.loading import end_at_ctrl_c

if __name__ == "__main__":
    end_at_ctrl_c()

from bench import memory, plots, servers, step, training, websocket
from bench.goal import Goal
from bench.peers.launch import end_in_order
from contract.files import write_whole
from export.results import command, machine, results_folder

# Each yields its rows as they are measured, with the name of a table, and then its goals.
SECTIONS: dict[str, Callable[[bool], Iterator[tuple[str, Any] | Goal]]] = {
    "step": step.measure,
    "http": servers.closed,
    "open": servers.opened,
    "websocket": websocket.measure,
    "memory": memory.measure,
    "training": training.measure,
}
# The others alone take as long as all of these.
QUICK_SECTIONS = ("step", "http", "websocket", "memory")
_PEERS = ("bentoml", "litserve", "nncf", "openvino")
_PACKAGES = ("numpy", "fastapi", "uvicorn", "websockets", "openvino", "nncf", "litserve", "bentoml")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the sections asked for, in the order of the list."""
    options = _options(arguments)
    print(", ".join(f"{k} {v}" for k, v in (machine() | _versions()).items()))
    goals: list[Goal] = []
    for section in options.sections:
        began_s = time.perf_counter()
        tables, found = _measure(section, full=options.all)
        goals += found
        content = {
            "command": command("bench", arguments), "machine": machine(), "versions": _versions(),
            "rows": tables, "goals": [asdict(goal) for goal in found],
        }  # fmt: skip
        file = keep(section, content, options.out, full=options.all)
        print(f"{section}: {time.perf_counter() - began_s:.0f} s, {file}", flush=True)
        if options.all and section in plots.PICTURES:
            plots.PICTURES[section](tables, file.parent)
    print("\n", *(f"{goal.line()}\n" for goal in goals), sep="", end="")
    measured = [goal for goal in goals if goal.met is not None]
    met = sum(bool(goal.met) for goal in measured)
    print(f"{met} of {len(measured)} goals met, {len(goals) - len(measured)} not measured")


def keep(section: str, content: dict[str, Any], folder: Path, *, full: bool) -> Path:
    """Write a section of a full run into a file of its own; one of a quick run into the file of
    all, where the others stay as they were."""
    file = folder / "bench" / f"{section}.json" if full else folder / "bench.json"
    if not full:
        content = (json.loads(file.read_text("utf-8")) if file.exists() else {}) | {
            section: content
        }
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(content, indent=1) + "\n")
    return file


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all models, sides, peers and loads")
    parser.add_argument("--sections", type=_sections, help=f"of {','.join(SECTIONS)}")
    parser.add_argument("--out", type=results_folder, default="docs/results", help="where to write")
    options = parser.parse_args(arguments)
    if options.sections is None:
        options.sections = list(SECTIONS if options.all else QUICK_SECTIONS)
    beside_all = options.all or "open" in options.sections
    if beside_all and (missing := [p for p in _PEERS if find_spec(p) is None]):
        parser.error(f"{', '.join(missing)} not installed: pip install '.[peers]'")
    return options


def _sections(given: str) -> list[str]:
    names = given.split(",")
    if unknown := [name for name in names if name not in SECTIONS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(SECTIONS)}")
    return [name for name in SECTIONS if name in names]


def _measure(section: str, *, full: bool) -> tuple[dict[str, list[dict[str, Any]]], list[Goal]]:
    """All rows of a section by table, each printed as it comes, and its goals."""
    tables: dict[str, list[dict[str, Any]]] = {}
    goals: list[Goal] = []
    for found in SECTIONS[section](full):
        if isinstance(found, Goal):
            goals.append(found)
            continue
        table, row = found
        if table not in tables:
            print(f"\n{table}")
        tables.setdefault(table, []).append(asdict(row))
        print(row.line() if hasattr(row, "line") else _told(row), flush=True)
    return tables, goals


def _told(row: Any) -> str:
    return ", ".join(f"{name} {value}" for name, value in asdict(row).items())


def _versions() -> dict[str, str]:
    """Of what is measured or measured with, as far as it is installed."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    end_in_order(main)
