"""What docs/exactness.md tells of the shipped models is what their manifests have."""

import re
from pathlib import Path

import pytest

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


def _rows(heading: str) -> list[list[str]]:
    """The cells of the tables of a part."""
    text = (_ROOT / "docs" / "exactness.md").read_text()
    (part,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]


def _report(name: str) -> dict[str, float]:
    parity = read_manifest(_ROOT / "artifacts" / name).parity
    assert parity
    return {finding.name: finding.value for finding in parity}


@pytest.mark.parametrize(
    ("heading", "name"), [("The report", "shakespeare"), ("The same for ink", "handwriting")]
)
def test_the_report_that_is_told_is_the_one_that_is_shipped(heading: str, name: str) -> None:
    told = {row[0]: row[1] for row in _rows(heading)[2:]}
    assert told == {line: f"{value:.3g}" for line, value in _report(name).items()}


@pytest.mark.parametrize("name", ["shakespeare-int8", "handwriting-int8"])
def test_what_is_told_of_eight_bits_is_what_is_shipped(name: str) -> None:
    head, _, *rows = _rows("Eight bits, as trained")
    report, column = _report(name), head.index(f"`{name}`")
    told = {row[0]: float(row[column].split()[0]) for row in rows}
    assert told == {
        line: float(f"{max(report[name] for name in names if name in report):.3g}")
        for line, names in _LINES.items()
    }
