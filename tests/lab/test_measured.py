"""The page of results: what its figures are told as where there are none."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from lab import paper
from lab.measured import page, proof, speed

_ROOT = Path(__file__).parents[2]


def _goal(name: str, met: bool | None) -> dict[str, Any]:
    value = None if met is None else 2.0
    return {"name": name, "compared": "a and b", "met": met, "value": value, "bound": 1.0,
            "unit": "ms", "direction": "at most"}  # fmt: skip


def test_a_goal_that_was_not_measured_is_neither_reached_nor_missed() -> None:
    goals = [_goal("first", True), _goal("second", False), _goal("third", None)]
    told = speed.goals(
        [{"command": "make bench-all", "goals": goals}], [{"command": "make bench", "goals": []}]
    )
    assert "**1 of 3** were missed" in " ".join(told.split())
    assert "| third | a and b | - | - |" in told


def test_losses_of_twins_are_told_with_the_bytes_that_are_in_whole_segments() -> None:
    """Of 1,000 bytes: 31 of each of 32 rows in segments of 10, 30 of them in whole ones."""
    recipe = {"model": {"units": 8}, "batch": {"rows": 32, "steps": 10}}
    content = {"command": "c", "recipe": recipe, "validation_bytes": 1000}
    told = " ".join(proof.norms(content | {"twins": [], "perturbations": []}).split())
    assert "Of the 1,000 bytes only those in whole segments count: 960, but" in told
    assert "1,000 in batches of 4 and 960 where segments are 3 times as long" in told
    longer = content | {"validation_bytes": 1900, "twins": [], "perturbations": []}
    told = " ".join(proof.norms(longer).split())
    assert "segments count: 1,600, but 1,880 in batches of 4 and 960 where" in told


def test_clients_that_wait_are_told_with_the_share_of_requests_that_failed() -> None:
    """Times are of the others alone, so that a service which refuses nearly all looks quick."""
    quick = {"p50": 2.0, "p99": 3.0}
    row = {
        "target": "service", "clients": 128, "streamed": True, "lengths": "fixed",
        "first_byte_ms": quick, "latency_ms": quick, "bytes_per_s": 100.0, "goodput_per_s": 1.0,
    }  # fmt: skip
    loads = [
        row | {"requests": requests, "errors": errors}
        for requests, errors in ((200, {"503": 100, "TimeoutError": 50}), (100, {}), (0, {}))
    ]
    others = [load | {"clients": 1} for load in loads[1:2]]
    content = {"command": "c", "rows": {"load": loads[:1] + others, "in_process": []}}
    lines = speed.http(content).splitlines()
    (head,) = [line for line in lines if line.startswith("| server")]
    cells = [line.split(" | ") for line in lines if line.startswith("| this service")]
    failed = head.split(" | ").index("failed, %")
    assert [row[failed] for row in cells] == ["75", "0"]
    every = {"command": "c", "rows": {"load": loads, "in_process": []}}
    assert "| 2, 3 | 0 | 100 | 1 |" in speed.http(every), "the median of repeats"


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_a_file_of_results_that_is_none_is_named(content: str, tmp_path: Path) -> None:
    shutil.copytree(_ROOT / "docs", tmp_path / "docs")
    (tmp_path / "artifacts").symlink_to(_ROOT / "artifacts")
    assert page.page(tmp_path) == (_ROOT / page.PAGE).read_text(encoding="utf-8")
    for file, write in (("lab/zebra.json", paper.page), ("contrast.json", page.page)):
        path = tmp_path / "docs" / "results" / file
        path.write_text(content)
        told = path if not content or write is paper.page else path.parent
        with pytest.raises(ValueError, match=f"^{told} is of another version or was altered"):
            write(tmp_path)


def test_a_server_that_answered_none_of_its_clients_has_a_dash_for_its_first_byte() -> None:
    """Of repeats, those count in which somebody was."""
    row = {"target": "peer", "clients": 32, "streamed": True, "lengths": "fixed"}
    failed = row | {"first_byte_ms": None}
    loads = [row | {"first_byte_ms": {"p50": ms, "p99": 2 * ms}} for ms in (1.0, 3.0)]
    others = [loads[0] | {"clients": 1, "first_byte_ms": None}]
    assert page._first_byte({"rows": {"load": [failed, *others]}}, "peer") == "-"
    assert page._first_byte({"rows": {"load": [failed, *loads]}}, "peer") == "2 and 4"


def test_where_no_normalisation_diverged_nothing_is_told_of_who_was_sooner() -> None:
    norms = {"layer": {"updates_to_best_of_none": None}}
    assert page._sooner({"cases": {"": {"norms": norms}}}) == "-"
