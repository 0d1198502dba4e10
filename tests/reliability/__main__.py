"""`python -m tests.reliability VERB`: what the service lives through, with the shipped models and
settings as they are by default, and every goal as met or missed.

Writes `VERB.json`, and a picture of what is a curve, into docs/results/reliability, or `--out`.
Exits 1 if a goal is missed.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence

from bench.goal import judge
from bench.peers.launch import end_in_order, launch
from bench.target import SERVICE
from export.results import command, results_folder
from tests.reliability import aborts, board, chaos, overload, soak
from tests.reliability.plots import PICTURES
from tests.reliability.record import Found, record

RESULTS = "docs/results/reliability"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; 1 if a goal is missed."""
    options = _options(arguments)
    file = options.out / f"{options.verb}.json"
    tables, missed = record(
        command("tests.reliability", arguments), _measure(options), file, silent={"samples"}
    )
    if options.verb in PICTURES:
        PICTURES[options.verb](tables, options.out / f"{options.verb}.png")
    return int(missed)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    parser.add_argument("--out", type=results_folder, default=RESULTS, help=f"folder [{RESULTS}]")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("overload", help="0.5 to 3 times what the service can do")
    verb.add_argument("--seconds", type=float, default=20.0, help="of each load [20]")
    verb.add_argument("--capacity-seconds", type=float, default=15.0, help="to find it [15]")
    verb.add_argument("--parts", nargs="+", choices=overload.PARTS, default=overload.PARTS,
                      help="text, text beside ink, one caller beside another [all]")  # fmt: skip
    verb.add_argument("--shares", nargs="+", type=float, default=overload.SHARES, metavar="SHARE",
                      help="of the capacity [0.5 1 2 3]")  # fmt: skip
    verb = verbs.add_parser("aborts", help="clients that leave")
    verb.add_argument("--clients", type=int, default=10_000, help="how many [10000]")
    verb = verbs.add_parser("soak", help="70%% of what it can do, for long")
    verb.add_argument("--minutes", type=float, default=30.0, help="how long [30]")
    verb = verbs.add_parser("chaos", help="faults, while clients stream and resume")
    verb.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=" ".join(chaos.SCENARIOS))
    verb.add_argument("--pause", type=float, default=2.0, help="seconds between two faults [2]")
    verb.add_argument("--length", type=int, default=3000, help="bytes, or points, of a stream")
    verb = verbs.add_parser("board", help="what the dashboard shows; wants Prometheus")
    verb.add_argument("--seconds", type=float, default=240.0, help="of load [240]")
    options = parser.parse_args(arguments)
    if unknown := [n for n in vars(options).get("scenarios", ()) if n not in chaos.SCENARIOS]:
        parser.error(f"no such scenario: {', '.join(unknown)}")
    return options


def _measure(options: argparse.Namespace) -> Iterator[Found]:
    if options.verb == "chaos":
        names = options.scenarios or list(chaos.SCENARIOS)
        yield from chaos.measure(names, options.pause, options.length)
        return
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        with launch(SERVICE, errors=said) as service:
            if options.verb == "overload":
                yield from overload.measure(
                    service,
                    options.seconds,
                    options.capacity_seconds,
                    options.shares,
                    options.parts,
                )
            elif options.verb == "board":
                yield from board.measure(service, options.seconds)
            elif options.verb == "aborts":
                yield from aborts.measure(service, options.clients)
            else:
                yield from soak.measure(service, options.minutes)
        said.seek(0)
        yield judge("tracebacks in the log", "none", "at most", 0, said.read().count("Traceback"))


if __name__ == "__main__":
    end_in_order(main)
