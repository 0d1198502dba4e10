"""`python -m bench [--all] [--sections step,http,...]`: measure beside peers and print every goal.

A quick run (`make bench`) takes up to ten minutes and writes docs/results/bench.json. With `--all`
(`make bench-all`) it takes some 30 and writes a file per section, and pictures, into
docs/results/bench as soon as the section ends. bench/README.md says how to read them.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from bench import plots, report
from bench.goals import outcomes
from bench.sections import QUICK_SECTIONS, SECTIONS
from export.results import machine

_PEER_PACKAGES = ("bentoml", "litserve", "openvino")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the sections asked for, in the order of the list."""
    options = _options(arguments)
    if options.all and (missing := [p for p in _PEER_PACKAGES if find_spec(p) is None]):
        raise SystemExit(f"{', '.join(missing)} not installed: pip install '.[peers]'")
    print(", ".join(f"{k} {v}" for k, v in (machine() | report.versions()).items()))
    command = " ".join(["python -m bench", *(sys.argv[1:] if arguments is None else arguments)])
    tables: dict[str, list[dict[str, Any]]] = {}
    for section in options.sections:
        began_s = time.perf_counter()
        found = _measure(section, full=options.all)
        tables |= found
        content = report.section_content(command, found, outcomes(section, found))
        file = (report.keep_full if options.all else report.keep_quick)(section, content)
        print(f"{section}: {time.perf_counter() - began_s:.0f} s, {file}", flush=True)
        if options.all:
            _draw(section, found)
    print()
    for line in report.goal_lines(tables):
        print(line)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="all models, sides, peers and loads")
    parser.add_argument("--sections", type=_sections, help=f"of {','.join(SECTIONS)}")
    options = parser.parse_args(arguments)
    if options.sections is None:
        options.sections = list(SECTIONS if options.all else QUICK_SECTIONS)
    return options


def _sections(given: str) -> list[str]:
    names = given.split(",")
    if unknown := [name for name in names if name not in SECTIONS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(SECTIONS)}")
    return [name for name in SECTIONS if name in names]


def _measure(section: str, *, full: bool) -> dict[str, list[dict[str, Any]]]:
    """All rows of a section by table, each printed as it comes."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, row in SECTIONS[section](full):
        if table not in tables:
            print(*report.head(table), sep="\n")
        tables.setdefault(table, []).append(asdict(row))
        print(report.line(row), flush=True)
    return tables


def _draw(section: str, tables: dict[str, list[dict[str, Any]]]) -> None:
    if section == "step":
        plots.plot_steps(tables["step"], report.FOLDER / "step.png")
    if section == "open":
        plots.plot_load(tables["load"], report.FOLDER / "http.png")


if __name__ == "__main__":
    main()
