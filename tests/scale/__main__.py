"""`python -m tests.scale haproxy`, or `ray`: what callers of two replicas may count on, every goal
as met or missed. `python -m tests.scale measure`: what a second replica gives, what a hop costs.

Writes `VERB.json` into docs/results/scale, or `--out`. Exits 1 if a goal is missed.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from bench.peers.launch import end_in_order
from export.results import command, results_folder
from tests.reliability.record import Found, record
from tests.scale import checks, measured
from tests.scale.fleets import Fleet, balanced, rayed, require_ray
from tests.scale.haproxy import program

RESULTS = "docs/results/scale"
_FLEETS: dict[str, Callable[[], AbstractContextManager[Fleet]]] = {
    "haproxy": balanced,
    "ray": rayed,
}
_NEEDS: dict[str, tuple[Callable[[], object], ...]] = {
    "haproxy": (program,),
    "ray": (require_ray,),
    "measure": (program, require_ray),
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
    options = _options(arguments)
    found = measured.measure() if options.verb == "measure" else _check(options)
    _, missed = record(
        command("tests.scale", arguments), found, options.out / f"{options.verb}.json"
    )
    return int(missed)


def _check(options: argparse.Namespace) -> Iterator[Found]:
    with _FLEETS[options.verb]() as fleet:
        for name in options.checks or _CHECKS:
            more = {"requests": options.requests} if name == "many" else {}
            yield from _CHECKS[name](fleet, **more)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.add_argument("--out", type=results_folder, default=RESULTS, help=f"folder [{RESULTS}]")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in _FLEETS:
        verb = verbs.add_parser(name, help=f"two replicas behind {name}")
        verb.add_argument("checks", nargs="*", metavar="CHECK", help=" ".join(_CHECKS))
        verb.add_argument("--requests", type=int, default=2000, help="of the check many [2000]")
    verbs.add_parser("measure", help="one replica and two, by HAProxy, by Ray and direct")
    options = parser.parse_args(arguments)
    if unknown := [name for name in vars(options).get("checks", ()) if name not in _CHECKS]:
        parser.error(f"no such check: {', '.join(unknown)}")
    try:
        for need in _NEEDS[options.verb]:
            need()
    except RuntimeError as error:
        parser.error(str(error))
    return options


if __name__ == "__main__":
    end_in_order(main)
