"""The page of results: what its figures are told as where there are none."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.manifest import Finding
from lab import paper
from lab.measured import page, proof, speed, table

_ROOT = Path(__file__).parents[2]
_RATES = {"layer": {"0.1": 1.25, "0.3": None}}
_TWIN = {"norm": "layer", "rate": 0.1, "served": 1.25}
_TWIN |= dict.fromkeys(("training", "training_small_batch", "training_longer"), 1.5)
_CONTRAST = {
    "command": "c",
    "recipe": {"model": {"units": 8}, "batch": {"rows": 32, "steps": 10}},
    "validation_bytes": 1000,
    "rates": _RATES,
    "twins": [_TWIN | {"served_longer": 2.0}],
    "perturbations": [],
}


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


def test_twins_are_told_with_what_is_not_alike_in_their_training() -> None:
    """Or the distance between two of them is taken for what a norm is worth."""
    told = " ".join(proof.norms(_CONTRAST).split())
    assert "under batch norm training begins every segment from the zero state" in told
    assert "by the root of ε, 0.0028, at the first step" in told
    assert "| layer | 0.1 | 1.5000 | 1.2500 | 1.5000 | 1.5000 | 2.0000 |" in told
    assert "| norm | 0.1 | 0.3 | | --- | --- | --- | | layer | 1.2500 | - |" in told


def test_table_1_is_told_with_the_weights_at_which_epsilon_is_lost() -> None:
    told = " ".join(proof.analysis({"command": "c", "table_1": []}).split())
    assert "normal numbers times 1,000" in told


def test_losses_of_twins_are_told_with_the_bytes_that_are_in_whole_segments() -> None:
    """Of 1,000 bytes: 31 of each of 32 rows in segments of 10, 30 of them in whole ones."""
    told = " ".join(proof.norms(_CONTRAST).split())
    assert "Of the 1,000 bytes only those in whole segments count: 960, but" in told
    assert "1,000 in batches of 4 and 960 where segments are 3 times as long" in told
    longer = _CONTRAST | {"validation_bytes": 1900}
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


@pytest.mark.parametrize(
    ("value", "told"),
    [(999.6, "1,000"), (999.4, "999"), (-1236.0, "-1,236"), (12, "12"), (0.0, "0"), (None, "-")],
)
def test_a_figure_of_thousands_is_told_whole(value: float | None, told: str) -> None:
    assert table.told(value) == told


def test_a_result_names_its_processor_or_what_is_known_of_it() -> None:
    machine = {"cores": 2, "architecture": "x86_64"}
    assert " on x86_64, 2 cores." in table.source({"command": "c", "machine": machine})
    named = machine | {"processor": "EPYC"}
    assert " on EPYC, 2 cores." in table.source({"command": "c", "machine": named})


def test_a_report_is_of_the_versions_it_was_converted_with_and_shows_what_is_red() -> None:
    parity = [Finding(name=name, value=value, bound=1.0, detail="of 3")
              for name, value in (("first", 0.5), ("second", 2.0))]  # fmt: skip
    trained = {"versions": {"torch": "1"}, "converted_with": {"torch": "2"}}
    manifest: Any = SimpleNamespace(name="pen", provenance=trained, parity=parity)
    told = proof.parity([manifest])
    assert "torch 2." in told
    assert "torch 1." not in told
    assert "| first | 0.5 | 1 | yes | of 3 |" in told
    assert "| second | 2 | 1 | **no** | of 3 |" in told


def test_what_is_not_as_in_the_paper_is_told() -> None:
    entry = {"change": "data", "norm": "layer", "invariant": None, "invariant_in_paper": False}
    content = {"command": "c", "table_1": [entry | {"most": 0.1, "least": 1e-9}]}
    assert "| data | **not as in the paper** |" in proof.analysis(content)


def test_a_peer_that_is_not_installed_leaves_a_dash() -> None:
    """And the others are of the same model and threads."""
    row = {"threads": 1, "us_median": 5.0, "over_floor_median": 1.5, "ratio_median": 0.5}
    steps = [
        {"model": model, "side": side} | row | other
        for model, side, other in (
            ("a", "served", {}), ("a", "served", {"threads": 2}), ("a", "quantized", {}),
            ("a", "quantized", {"threads": 2}), ("a", "eager", {"ratio_median": 7.0}),
            ("a", "eager-int8", {"ratio_median": 2.0}),
        )
    ]  # fmt: skip
    told = speed.step({"command": "c", "rows": {"step": steps, "line": []}})
    assert "| `a` | 1 | 5 | 7 | - | - | - | - | 1.5 |" in told
    assert "| `a` | 2 | 5 | - | - | - | - | - | 1.5 |" in told
    assert "| `a` | 1 | 5 | 4 | - |" in told
    assert "| `a` | 2 | 5 | - | - |" in told


def test_repeats_are_told_by_their_medians() -> None:
    quick = {"p50": 2.0, "p99": 3.0}
    loads = [
        {"target": "new", "clients": 1, "streamed": False, "lengths": "mixed", "requests": 100,
         "first_byte_ms": quick, "latency_ms": quick, "bytes_per_s": float(10 * n),
         "goodput_per_s": float(n), "errors": {"503": 2 * n, "500": n}}
        for n in (9, 1, 2)
    ]  # fmt: skip
    inside = [{"rows": 4, "ms_median": float(n), "bytes_per_s": 10.0 * n} for n in (9, 1, 2)]
    told = speed.http({"command": "c", "rows": {"load": loads, "in_process": inside}})
    assert "| new | 1 | no | mixed | 2, 3 | 2, 3 | 6 | 20 | 2 |" in told
    assert "| 4 | 2 | 20 |" in told


def test_arrivals_are_of_open_loops_and_every_failure_counts() -> None:
    row = {"rate_per_s": 5.0, "target": "new", "streamed": True, "first_byte_ms": None,
           "latency_ms": None, "goodput_per_s": 0.0, "errors": {"503": 4, "500": 2}}  # fmt: skip
    loads = [row | {"loop": loop, "target": loop} for loop in ("open", "closed")]
    told = speed.arrivals({"command": "c", "rows": {"load": loads}})
    assert "| 5 | open | yes | - | - | 0 | 6 |" in told
    assert "closed" not in told


def test_goals_of_every_section_stand_beside_those_of_the_short_run() -> None:
    full = [{"command": "all", "goals": [_goal(name, True)]} for name in ("first", "second")]
    quick = [{"command": "few", "goals": [_goal("second", False)]}]
    told = speed.goals(full, quick)
    assert "| first | a and b | 2 ms, at most 1: met | - |" in told
    assert "| second | a and b | 2 ms, at most 1: met | 2 ms, at most 1: **missed** |" in told
    assert "**0 of 2**" in told


def test_memory_is_of_all_models_of_a_service() -> None:
    rows = {"resident": [{"models": ["a", "b"], "resident_mb": 2.0}], "waiting": [], "start": []}
    assert "| resident, `a` and `b` | 2 MB |" in speed.memory({"command": "c", "rows": rows})
