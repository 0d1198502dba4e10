"""What docs/exactness.md and docs/gpu.md tell is what manifests and results have."""

import json
import re
from pathlib import Path

import pytest

from contract.manifest import Finding
from contract.manifests import read_manifest

_ROOT = Path(__file__).parents[1]
# What the table of eight bits calls a line of the report, by what the report calls it.
_LINES = {
    "structure, float64": ("structure",),
    "rounding, over training's own": ("rounding",),
    "log-probability, log-density": ("log-probability", "log-density"),
    "drawn differently": ("sampling",),
    "bits per byte, nats a point apart": (
        "score, sampled text",
        "score, validation text",
        "score, sampled ink",
    ),
    "bytes moved": ("bits",),
}


def _rows(heading: str, page: str = "exactness") -> list[list[str]]:
    """The cells of the tables of a part."""
    text = (_ROOT / "docs" / f"{page}.md").read_text("utf-8")
    (part,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]


def _report(name: str) -> dict[str, Finding]:
    parity = read_manifest(_ROOT / "artifacts" / name).parity
    assert parity
    return {finding.name: finding for finding in parity}


@pytest.mark.parametrize(
    ("heading", "name"), [("The report", "shakespeare"), ("The same for ink", "handwriting")]
)
def test_the_report_that_is_told_is_the_one_that_is_shipped(heading: str, name: str) -> None:
    for row, (line, found) in zip(_rows(heading)[2:], _report(name).items(), strict=True):
        assert row[:3] == [line, f"{found.value:.3g}", f"{found.bound:g}"]
        assert row[3].replace(r"\|", "|").endswith(found.detail)


@pytest.mark.parametrize("name", ["shakespeare-int8", "handwriting-int8"])
def test_what_is_told_of_eight_bits_is_what_is_shipped(name: str) -> None:
    head, _, *rows = _rows("Eight bits, as trained")
    report, column = _report(name), head.index(f"`{name}`")
    told = {row[0]: float(row[column].split()[0]) for row in rows}
    assert told == {
        line: float(f"{max(report[name].value for name in names if name in report):.3g}")
        for line, names in _LINES.items()
    }


def test_requests_to_a_gpu_are_told_as_they_were_measured() -> None:
    columns = {
        "whole answer, ms at the median": (False, "latency_ms", "p50"),
        "first byte of a stream, ms at the median": (True, "first_byte_ms", "p50"),
        "first byte of a stream, ms at the 99th percentile": (True, "first_byte_ms", "p99"),
        "bytes a second, whole answers": (False, "bytes_per_s", None),
        "bytes a second, streamed": (True, "bytes_per_s", None),
    }
    measured = json.loads((_ROOT / "docs/results/gpu-http.json").read_text("utf-8"))["rows"]
    _, _, *rows = _rows("Requests", "gpu")
    assert len(rows) == 6
    for what, clients, *told in rows:
        streamed, column, percentile = columns[what]
        for runtime, cell in zip(("cuda", "cpu"), told, strict=True):
            (row,) = (
                r
                for r in measured
                if (r["clients"], r["streamed"]) == (int(clients), streamed)
                and r["runtime"].startswith(runtime)
            )
            value = row[column][percentile] if percentile else row[column]
            digits = len(cell.partition(".")[2])
            assert cell == f"{value:,.{digits}f}", (what, clients, runtime)
