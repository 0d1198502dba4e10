"""`python -m tests.scale haproxy`, or `ray`: what callers of two replicas may count on, every goal
as met or missed. `python -m tests.scale measure`: what a second replica gives, what a hop costs.

Writes `VERB.json` into docs/results/scale, or `--out`. Exits 1 if a goal is missed.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from bench.peers.launch import end_in_order
from tests.reliability.record import Found, record
from tests.scale import checks, measured
from tests.scale.fleets import Fleet, balanced, rayed

RESULTS = Path("docs", "results", "scale")
_FLEETS: dict[str, Callable[[], AbstractContextManager[Fleet]]] = {
    "haproxy": balanced,
    "ray": rayed,
}
_CHECKS: dict[str, Callable[..., Iterator[Found]]] = {
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
    command = " ".join(["python -m tests.scale", *(arguments or sys.argv[1:])])
    found = measured.measure() if options.verb == "measure" else _check(options)
    _, missed = record(command, found, options.out / f"{options.verb}.json")
    return int(missed)


def _check(options: argparse.Namespace) -> Iterator[Found]:
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
    end_in_order()
    sys.exit(main())
