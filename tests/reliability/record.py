"""What a command finds: said as it comes, judged, and written down with where that was."""

from collections.abc import Collection, Iterable
from dataclasses import asdict, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.goal import Goal
from export.results import machine, write_json

_PACKAGES = ("aiohttp", "fastapi", "httptools", "httpx", "uvicorn", "uvloop", "websockets")
Found = tuple[str, Any] | Goal
Tables = dict[str, list[Any]]


def record(
    command: str, found: Iterable[Found], file: Path, silent: Collection[str] = ()
) -> tuple[Tables, bool]:
    """Print what is found, but for rows of `silent` tables, and write it to a file. Returns the
    rows by table, and whether a goal was missed."""
    tables: Tables = {}
    goals: list[Goal] = []
    for one in found:
        if isinstance(one, Goal):
            goals.append(one)
            print(one.line(), flush=True)
            continue
        table, row = one
        tables.setdefault(table, []).append(asdict(row) if is_dataclass(row) else row)
        if table not in silent:
            print(f"{table}: {tables[table][-1]}", flush=True)
    content = {
        "command": command,
        "machine": machine(),
        "versions": {package: version(package) for package in _PACKAGES},
        "rows": tables,
        "goals": [asdict(goal) for goal in goals],
    }
    write_json(file, content)
    return tables, any(goal.met is False for goal in goals)
