"""What `export pens` tells of lines, and the sheet that it draws of them."""

import io
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from training.ink import command, sheet
from training.ink.line import Line, counted

_STROKE = np.array([[0, 0], [1, 2], [3, 1]], np.float32)


def _line(text: str, source: str = "inv", strokes: int = 1) -> Line:
    return Line(text, (_STROKE,) * strokes, "w", source, 100.0)


def test_sources_are_told_in_order_and_a_line_without_a_character_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [_line("a b", "z"), _line(" ", "a", strokes=4)]
    monkeypatch.setattr(command, "read_lines", lambda *_: lines)
    assert command.show(Path()) == lines
    assert [row.split() for row in capsys.readouterr().out.splitlines()[3:]] == [
        ["a", "1", "1", "0", "12.0"],
        ["z", "1", "1", "2", "1.5"],
    ]


def _drawn(lines: list[Line], monkeypatch: pytest.MonkeyPatch) -> Figure:
    figures: list[Figure] = []
    others = pyplot.get_fignums()
    monkeypatch.setattr(sheet, "save_figure", lambda figure, _: figures.append(figure))
    with pyplot.rc_context({"axes.titlelocation": "center"}):  # whatever figures were drawn before
        sheet.plot_sheet(lines, Path(), title="of $ and \udcff")
    assert pyplot.get_fignums() == others
    return figures[0]


def test_a_sheet_has_24_lines_always_the_same_each_with_its_text_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [_line(f"{number} \xe4 $x$") for number in range(30)]
    first, again = (_drawn(lines, monkeypatch).axes for _ in range(2))
    told = [axes.get_title() for axes in first]
    assert len(set(told)) == 24
    assert told == [axes.get_title() for axes in again]
    assert all(title.endswith("\\xe4 $x$'   inv, writer w") for title in told)
    assert not any(axes.title.get_parse_math() for axes in first)


def test_a_dot_is_seen_on_a_sheet_and_ink_is_not_stretched(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line("i", (_STROKE, _STROKE[:1]), "\xe4", "inv", 100.0)
    axes, empty = _drawn([line], monkeypatch).axes
    assert [curve.get_marker() for curve in axes.lines] == ["", "o"]
    assert axes.get_aspect() == 1
    assert axes.get_title().endswith("writer \\xe4")
    assert not empty.lines


def test_a_sheet_of_nothing_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(axes.lines for axes in _drawn([], monkeypatch).axes)


class _Told(io.StringIO):
    """Standard error, of a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [False, True])
def test_how_far_lines_are_is_shown_to_who_sits_at_a_terminal_and_in_no_log(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _Told(terminal)
    monkeypatch.setattr("sys.stderr", told)
    assert [line.text for line in counted([_line("a"), _line("b")])] == ["a", "b"]
    assert bool(told.getvalue()) == terminal
