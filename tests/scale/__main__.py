"""`python -m tests.scale haproxy`, or `ray`: what callers of two replicas may count on, every goal
as met or missed. `python -m tests.scale measure`: what a second replica gives, what a hop costs.

Writes `VERB.json` into docs/results/scale, or `--out`. Exits 1 if a goal is missed.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.goal import Goal
from export.results import machine, write_json
from tests.scale import checks, measured
from tests.scale.fleets import Fleet, balanced, rayed

RESULTS = Path("docs", "results", "scale")
_PACKAGES = ("aiohttp", "fastapi", "httptools", "httpx", "uvicorn", "uvloop", "websockets")
_FLEETS: dict[str, Callable[[], AbstractContextManager[Fleet]]] = {
    "haproxy": balanced,
    "ray": rayed,
}
_CHECKS: dict[str, Callable[..., Iterator[checks.Found]]] = {
    "streamed": checks.streamed,
    "session": checks.session,
    "left": checks.left,
    "many": checks.many,
    "killed": checks.killed,
    "rolled": checks.rolled,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check or measure, print, write; 1 if a goal is missed."""
    options = _parser().parse_args(arguments)
    tables: dict[str, list[Any]] = {}
    goals: list[Goal] = []
    for found in measured.measure() if options.verb == "measure" else _check(options):
        if isinstance(found, Goal):
            goals.append(found)
            print(found.line(), flush=True)
            continue
        table, row = found
        tables.setdefault(table, []).append(row)
        print(f"{table}: {row}", flush=True)
    content = {
        "command": " ".join(["python -m tests.scale", *(arguments or sys.argv[1:])]),
        "machine": machine(),
        "versions": {package: version(package) for package in _PACKAGES},
        "rows": tables,
        "goals": [asdict(goal) for goal in goals],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / f"{options.verb}.json", content)
    return int(any(goal.met is False for goal in goals))


def _check(options: argparse.Namespace) -> Iterator[checks.Found]:
    with _FLEETS[options.verb]() as fleet:
        for name in options.checks or _CHECKS:
            more = {"requests": options.requests} if name == "many" else {}
            yield from _CHECKS[name](fleet, **more)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"folder [{RESULTS}]")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in _FLEETS:
        verb = verbs.add_parser(name, help=f"two replicas behind {name}")
        verb.add_argument("checks", nargs="*", metavar="CHECK", help=" ".join(_CHECKS))
        verb.add_argument("--requests", type=int, default=2000, help="of the check many [2000]")
    verbs.add_parser("measure", help="one replica and two, by HAProxy, by Ray and direct")
    return parser


if __name__ == "__main__":
    sys.exit(main())
