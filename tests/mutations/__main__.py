"""`python -m tests.mutations [ID...]`: plant every defect of the table, or these, each in a copy of
the project, and write to docs/results/mutations.json which test notices it.

`--all` runs the whole suite where the named tests notice nothing; `--left` only takes defects that
no result says are dead. Exits 1 when one survives.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from export.results import machine, write_json
from tests.mutations.plugin import MADE, REPORT
from tests.mutations.table import ROOT, Defect, read_table

RESULTS = ROOT / "docs" / "results" / "mutations.json"
AT_ONCE = 2
LIMIT_S = 300
_SUITE_LIMIT_S = 1800
_LEFT_OUT = shutil.ignore_patterns(".*", "*_cache", "__pycache__", "*.egg-info")
_LEFT_OUT_OF_THE_TOP = {"runs", "data", "build", "artifacts"}  # a test may have a folder `data`
_MADE_OF = ("contract", "models", "training", "export", "tests/artifacts.py")
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutations.plugin")

Result = dict[str, Any]


def main() -> int:
    """Plant, run, write, print; 1 if a defect survives."""
    table = {defect.id: defect for defect in read_table()}
    options = _options(table)
    results = _results_so_far(table)
    ids = [i for i in options.ids or table if not (options.left and _dead(results.get(i)))]
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        clean = _copy(ROOT, Path(name, "clean"))
        made = _make_artifacts(clean) if any(_of_service(table[i]) for i in ids) else None
        with ThreadPoolExecutor(AT_ONCE) as pool:
            runs = {i: pool.submit(_plant, clean, table[i], made, options.all) for i in ids}
            try:
                for i, run in runs.items():
                    results[i] = run.result()
                    print(_line(results[i]), flush=True)
                    _write(table, results)
            finally:  # after Ctrl-C the pool would plant all others first
                pool.shutdown(cancel_futures=True)
        _void(clean, made, [results[i] for i in (ids if options.ids else results)])
    _write(table, results)
    survivors = [i for i in ids if not _dead(results[i])]
    print(f"{len(ids) - len(survivors)} of {len(ids)} noticed; survive: {survivors or 'none'}")
    return bool(survivors)


def _options(table: dict[str, Defect]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="defects to plant; all by default")
    parser.add_argument("--all", action="store_true", help="the whole suite where need be")
    parser.add_argument("--left", action="store_true", help="pass over defects known to be dead")
    options = parser.parse_args()
    if unknown := [i for i in options.ids if i not in table]:
        parser.error(f"no such defect: {', '.join(unknown)}")
    return options


def _plant(clean: Path, defect: Defect, made: Path | None, whole: bool) -> Result:
    """Run the tests of one defect in a copy of its own."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"{defect.id}-") as name:
        copy = _copy(clean, Path(name, "copy"))
        path = copy / defect.file
        path.write_text(defect.planted(path.read_text()))
        made = made if _of_service(defect) else None
        tests = [test for test in defect.tests if (copy / test.partition("::")[0]).exists()]
        failed = _pytest(copy, tests, made, LIMIT_S, "-x") if tests else []
        if whole and not failed:
            failed = _pytest(copy, ["--ignore=tests/mutations"], made, _SUITE_LIMIT_S, "-x")
    noticed = failed[0] if failed else {}
    return {
        "id": defect.id,
        "file": defect.file,
        "what": defect.what,
        "listed": defect.listed,
        "killed_by": _noticed_by(noticed),
        "seconds": round(time.monotonic() - began_s, 1),
        "planted": _digest(defect),
    } | ({} if _noticed_by(noticed) or not noticed else {"broke": noticed})


def _noticed_by(failure: dict[str, str]) -> str | None:
    """A test, or the limit of time, which no name of a test is in."""
    return failure.get("test") or failure.get("limit")


def _pytest(
    folder: Path, tests: Sequence[str], made: Path | None, limit_s: int, *options: str
) -> list[dict[str, str]]:
    """What failed, in order: each `test` or `collection` by its name; or pytest itself."""
    report = folder.parent / "report.jsonl"
    report.unlink(missing_ok=True)
    environment = os.environ | {
        REPORT: str(report),
        "PYTHONDONTWRITEBYTECODE": "1",
        "EVENKEEL_LONG": "1",
    }
    environment |= {MADE: str(made)} if made else {}
    command = [sys.executable, *_PYTEST, *options, *tests]
    with (folder.parent / "output.txt").open("w") as output:
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, timeout=limit_s, stdout=output, stderr=output
            )
        except subprocess.TimeoutExpired:
            return [{"limit": f"the limit of {limit_s} s"}]
    if report.exists():
        return [json.loads(line) for line in report.read_text().splitlines()]
    return [] if done.returncode == 0 else [{"pytest": f"ended with {done.returncode}"}]


def _void(clean: Path, made: Path | None, results: Sequence[Result]) -> None:
    """A test that fails without any defect has noticed none. Raises `SystemExit` where one could
    not be run: none has been asked then."""
    tests = {r["killed_by"] for r in results if r["killed_by"] and "::" in r["killed_by"]}
    # Where a browser is driven, its driver's event loop runs on, and no other may be run.
    driven = {test for test in tests if test.startswith("tests/page/")}
    parts = [sorted(part) for part in (driven, tests - driven) if part]
    failed = [each for part in parts for each in _pytest(clean, part, made, _SUITE_LIMIT_S)]
    if unasked := [failure for failure in failed if "test" not in failure]:
        raise SystemExit(f"what noticed a defect could not be run without it: {unasked}")
    names = {failure["test"] for failure in failed}
    print(f"of {len(tests)} tests that noticed one, these fail without: {names or 'none'}")
    for result in results:
        if result["killed_by"] in names:
            result |= {"killed_by": None, "broke": f"{result['killed_by']} fails without it"}


def _make_artifacts(clean: Path) -> Path:
    """The artifacts of the tests, made once for all defects of the service and kept in `build/`."""
    digest = hashlib.sha256()
    for path in sorted(p for part in _MADE_OF for p in _files(clean / part)):
        digest.update(path.read_bytes())
    made = ROOT / "build" / "mutations" / digest.hexdigest()[:16]
    if not made.exists():
        script = (
            "import sys; from pathlib import Path; from tests import artifacts as a; "
            "names = 'letters', 'noise', 'scrawl', 'squint'; "
            "[getattr(a, f'write_{n}')(Path(sys.argv[1])) for n in names]"
        )
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent) as making:
            subprocess.run([sys.executable, "-c", script, making], cwd=clean, check=True)
            shutil.copytree(making, made)
    return made


def _files(path: Path) -> Iterator[Path]:
    return path.rglob("*.py") if path.is_dir() else iter([path])


def _copy(source: Path, target: Path) -> Path:
    def left_out(folder: str, names: list[str]) -> set[str]:
        top = _LEFT_OUT_OF_THE_TOP if Path(folder) == source else set()
        return _LEFT_OUT(folder, names) | top.intersection(names)

    shutil.copytree(source, target, ignore=left_out)
    (target / "artifacts").symlink_to((source / "artifacts").resolve())
    return target


def _of_service(defect: Defect) -> bool:
    return defect.file.startswith("service/")


def _dead(result: Result | None) -> bool:
    return bool(result and result["killed_by"])


def _digest(defect: Defect) -> str:
    """Of what is planted: a result of another text counts for nothing."""
    return hashlib.sha256(repr((defect.file, defect.edits)).encode()).hexdigest()[:16]


def _results_so_far(table: dict[str, Defect]) -> dict[str, Result]:
    if not RESULTS.exists():
        return {}
    found = {r["id"]: r for r in json.loads(RESULTS.read_text())["defects"]}
    return {i: r for i, r in found.items() if i in table and r["planted"] == _digest(table[i])}


def _write(table: dict[str, Defect], results: dict[str, Result]) -> None:
    rows = [results[i] for i in table if i in results]
    content = {
        "command": "make mutations",
        "machine": machine(),
        "planted": len(rows),
        "killed": sum(map(_dead, rows)),
        "survivors": [row["id"] for row in rows if not _dead(row)],
        "defects": rows,
    }
    write_json(RESULTS, content)


def _line(result: Result) -> str:
    told = result["killed_by"] or f"SURVIVES {result.get('broke', '')}"
    return f"{result['id']:40} {result['seconds']:6.1f} s  {told}"


if __name__ == "__main__":
    sys.exit(main())
