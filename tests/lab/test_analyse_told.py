"""The analysis as it is told: which figure stands in which row and column of what is printed."""

import pytest
import torch

from lab.analyse import print_fisher, print_padding, print_table
from lab.analysis.fisher import Doubling, InputScale
from lab.analysis.invariance import KINDS, Entry
from lab.analysis.padding import Sentences, Worked


def _rows(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().out.splitlines() if line]


def test_each_row_of_table_1_is_of_its_change(capsys: pytest.CaptureFixture[str]) -> None:
    """The most where nothing changes, the least elsewhere, both where it is neither."""
    same, other = [
        [Entry(change, kind, least, most, least < 1e-6) for kind in KINDS]
        for change, least, most in (("turned", 1e-16, 2e-15), ("moved", 0.3, 0.9))
    ]
    torn = Entry("moved", "layer", 1e-4, 0.5, True)
    print_table([*same, *other[:2], torn])
    _, head, first, second = _rows(capsys)
    assert head.split() == ["batch", "norm", "weight", "norm", "layer", "norm"]
    assert first.split() == ["turned", *["invariant", "2e-15"] * 3]
    assert second.split() == ["moved", *["changes", "3e-01"] * 2, "UNCLEAR", "1e-04", "to", "5e-01"]
    print_table([Entry("moved", kind, 0.3, 0.9, True) for kind in KINDS])
    assert _rows(capsys)[-1].split() == ["moved", *["changes", "3e-01", "NOT", "AS", "PAPER"] * 3]


def test_what_padding_does_is_told_by_row_and_by_column(capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three, bias, row, column = (torch.full((1, 2), float(n)) for n in range(1, 7))
    worked = Worked(one, two, three, 0.25, 7.5, bias[0], row[0], column[0])
    print_padding(worked, Sentences(2e-16, 1.25, 3e-17, True))
    _, table, moved, becomes, attended = _rows(capsys)
    assert table.split("   ") == ["  (1, 1)", "(+2.0000, +2.0000)", "(+3.0000, +3.0000)"]
    assert moved.endswith("five rows by 0.2 (layer), 7.50 (batch)")
    assert becomes == (
        "A zero row becomes (+5.0000, +5.0000) (layer: the bias), (+6.0000, +6.0000) (batch); "
        "bias (+4.0000, +4.0000)"
    )
    assert "moves by 2e-16 (layer), 1.25 (batch)" in attended
    assert "off the bias by 3e-17 (layer)" in attended


def test_each_ratio_of_a_doubling_stands_below_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = dict(
        output_change=8.0, squared_length=7.0, length=6.0, vector_gain=None, vector_vector=4.0,
        gain=3.0, gradient=2.0, turn=1.0,
    )  # fmt: skip
    print_fisher([Doubling("none", **ratios)], [InputScale("layer", 1.0), InputScale("none", 100)])  # type: ignore[arg-type]
    *_, head, row, inputs = _rows(capsys)
    cells = [(head[at : at + 16].strip(), row[at : at + 16].strip()) for at in range(8, 136, 16)]
    told = {name.replace("_", " "): value for name, value in ratios.items()}
    assert cells == [(n, "" if v is None else f"{v:g}") for n, v in told.items()]
    assert row.startswith("none ")
    assert inputs.endswith("curvature of a unit's magnitude: layer 1, none 100")
