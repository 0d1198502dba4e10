"""What a run leaves behind: rows and goals on the screen, and in JSON under docs/results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench import step
from bench.goals import GOALS, Goal, Outcome, judge
from bench.pairs import Tables
from bench.rows import LoadRow
from export.results import machine

RESULTS = Path("docs", "results")
QUICK_FILE = RESULTS / "bench.json"
FOLDER = RESULTS / "bench"
_PEER_PACKAGES = ("numpy", "fastapi", "uvicorn", "websockets", "openvino", "litserve", "bentoml")


def versions() -> dict[str, str]:
    """Of what is measured or measured with, as far as it is installed."""
    found = {}
    for package in _PEER_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def section_content(command: str, tables: Tables, goals: Sequence[Outcome]) -> dict[str, Any]:
    """A section as it stands in a file."""
    return {
        "command": command,
        "machine": machine(),
        "versions": versions(),
        "rows": tables,
        "goals": [asdict(goal) for goal in goals],
    }


def keep_full(section: str, content: Mapping[str, Any], folder: Path = FOLDER) -> Path:
    """Write a section of a full run into a file of its own."""
    return _write(folder / f"{section}.json", content)


def keep_quick(section: str, content: Mapping[str, Any], file: Path = QUICK_FILE) -> Path:
    """Put a section of a quick run into the file of all; the others stay as they were."""
    before = json.loads(file.read_text()) if file.exists() else {}
    return _write(file, before | {section: content})


def _write(file: Path, content: Mapping[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n")
    return file


def head(table: str) -> Iterator[str]:
    """What stands above the first row of a table."""
    yield f"\n{table}"
    if table == "step":
        yield from step.lines([])


def line(row: Any) -> str:
    """A row for people."""
    if isinstance(row, LoadRow):
        return row.line()
    if isinstance(row, step.StepRow):
        return list(step.lines([row]))[-1]
    return ", ".join(f"{name} {_told(value)}" for name, value in asdict(row).items())


def _told(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def goal_lines(tables: Tables, goals: Sequence[Goal] = GOALS) -> Iterator[str]:
    """Every goal once, met, missed or not measured, and how many were met."""
    found = [judge(goal, tables) for goal in goals]
    yield from (outcome.line() for outcome in found)
    measured = [outcome for outcome in found if outcome.met is not None]
    met = sum(bool(outcome.met) for outcome in measured)
    yield f"{met} of {len(measured)} goals met, {len(found) - len(measured)} not measured"
