"""What vpype finds in drawings for plotters is what was written, and what it makes of them for a
plotter is what we send one; skipped where `make plotter-check` has not installed it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.ink.plotter import to_plotter_svg
from tests.service.ink.plotted import Points, as_written, of_gcode, of_hpgl
from tests.service.ink.reads import INSTALLED, MM_PER_PX, Read, asked
from tests.service.ink.sheets import sheet
from tests.service.writing import InkService

pytestmark = pytest.mark.skipif(
    not INSTALLED, reason="vpype is not installed; make plotter-check does that"
)
_TEXT = "Ça va, naïve señor Åke? 20° ¿no?\n- één\n- two: i, j.\n"
_A_MICRON = 0.001
# Of a place: half a micron in the file, vpype's mm, which are 6e-7 of one too long, its decimals.
_NEAR_MM = 0.0008
_UNITS_PER_MM = 40  # of HP-GL
# Papers as they are asked for, and as they come, in mm.
_PAPERS: dict[str, tuple[dict[str, Any], tuple[float, float]]] = {
    "a line": ({"text": "Even keel", "width": 480}, (127, 33.867)),
    "to the edges": ({"page": "a4", "margin": 0, "line_height": 90}, (210, 297)),
    "wandering": ({"page": "letter", "wander": 0.2, "line_height": 40}, (215.9, 279.4)),
    "sheets": (
        {"page": {"width": 100, "height": 50.5}, "margin": 5, "line_height": 40},
        (100, 50.5),
    ),
}
_EACH = pytest.mark.parametrize("name", _PAPERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A page as the service answers it, in `sheets` sheets of some mm, and what vpype reads in its
    drawing; `written` are its strokes in mm, y up from below the last sheet."""

    size_mm: tuple[float, float]
    sheets: int
    written: list[Points]
    hpgl: str
    gcode: str
    read: Read

    def of_sheets(self, drawn: list[list[Points]]) -> list[Points]:
        """The strokes of each sheet on all of them, one below the other."""
        assert len(drawn) == self.sheets
        up_mm = [(0, self.size_mm[1] * n) for n in reversed(range(self.sheets))]
        return [s + up for strokes, up in zip(drawn, up_mm, strict=True) for s in strokes]


@pytest.fixture(scope="module")
def case(ink: InkService, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    @cache
    def made(name: str) -> Case:
        asked_for, size_mm = _PAPERS[name]
        body = {"text": _TEXT, "seed": 2} | asked_for
        answer = ink.write(**body)
        drawing, hpgl, gcode = (
            ink.post(**body, format=name).text for name in ("plotter-svg", "hpgl", "gcode")
        )
        sheets = answer.get("pages", 1)
        most_mm = np.array([size_mm[0], size_mm[1] * sheets])
        ink_px = [np.array(stroke) for line in answer["lines"] for stroke in line["strokes"]]
        within = [(s * MM_PER_PX).clip(0, most_mm - _A_MICRON) for s in ink_px]
        return Case(
            size_mm=size_mm,
            sheets=sheets,
            written=[_moved(stroke) * (1, -1) + (0, most_mm[1]) for stroke in within],
            hpgl=hpgl,
            gcode=gcode,
            read=asked(tmp_path_factory.mktemp("vpype"), drawing),
        )

    return made


def _moved(stroke: Points, by: Points | None = None) -> Points:
    """A stroke without the places where `by`, it itself if not given, stays where it was; a dot is
    two places."""
    by = stroke if by is None else by
    kept = np.append(True, (np.diff(by.round(3), axis=0) != 0).any(axis=1))
    return stroke[kept] if kept.sum() > 1 else stroke[[0, 0]]


def _furthest(drawn: list[Points], others: list[Points]) -> float:
    """How far the places of strokes are from those of others, along an axis, at most."""
    assert list(map(len, drawn)) == list(map(len, others))
    return float(np.abs(np.concatenate(drawn) - np.concatenate(others)).max())


def _length(strokes: list[Points]) -> float:
    return sum(float(np.hypot(*np.diff(stroke, axis=0).T).sum()) for stroke in strokes)


@_EACH
def test_a_page_has_its_size_and_each_stroke_is_a_path(
    case: Callable[[str], Case], name: str
) -> None:
    page = case(name)
    told, (width_mm, height_mm) = page.read.told, page.size_mm
    assert told.page == pytest.approx((width_mm, page.sheets * height_mm), rel=1e-6)
    assert (told.layers, told.paths) == (1, len(page.written))
    left, top, right, bottom = told.bounds
    assert 0 <= left < right <= told.page[0]
    assert 0 <= top < bottom <= told.page[1]
    assert (page.sheets > 1) == (name == "sheets")


@_EACH
def test_strokes_come_as_they_were_written_one_after_the_other(
    case: Callable[[str], Case], name: str
) -> None:
    page = case(name)
    assert _furthest(page.read.in_gcode, page.written) < _NEAR_MM + _A_MICRON  # a dot's end
    assert page.read.told.down == pytest.approx(_length(page.written), rel=1e-3)
    ways = zip(page.written, page.written[1:], strict=False)
    air_mm = sum(float(np.hypot(*(after[0] - before[-1]))) for before, after in ways)
    assert page.read.told.up == pytest.approx(air_mm, rel=1e-3)


@_EACH
def test_no_path_is_closed_but_a_ring(case: Callable[[str], Case], name: str) -> None:
    page = case(name)
    closed, rings = (
        [bool((s[0] == s[-1]).all()) and len(s) > 2 for s in strokes]
        for strokes in (page.read.in_gcode, page.written)
    )
    assert closed == rings
    assert any(closed) == (name != "a line")


@_EACH
def test_vpype_makes_the_same_gcode(case: Callable[[str], Case], name: str) -> None:
    page = case(name)
    ours = page.of_sheets([of_gcode(part) for part in _sheets(page.gcode, "G0 X0 Y0\nM0\n")])
    ours = as_written([_moved(stroke) for stroke in ours], page.read.in_gcode)
    assert _furthest(ours, page.read.in_gcode) < 2 * _NEAR_MM + _A_MICRON


@_EACH
def test_vpype_makes_the_same_hpgl(case: Callable[[str], Case], name: str) -> None:
    page = case(name)
    in_gcode = [s for part in _sheets(page.gcode, "G0 X0 Y0\nM0\n") for s in of_gcode(part)]
    ours = page.of_sheets([of_hpgl(part) for part in _sheets(page.hpgl, "PU0,0;\nPG;\n")])
    moved = [_moved(s, by) for s, by in zip(ours, in_gcode, strict=True)]
    ours, theirs = as_written(moved, page.read.in_hpgl), page.read.in_hpgl
    assert _furthest(ours, theirs) * _UNITS_PER_MM < 1.01
    apart = np.concatenate(ours) - np.concatenate(theirs)
    assert np.count_nonzero(apart.round(3)) < 0.1 * apart.size


def _sheets(text: str, between: str) -> list[str]:
    """The commands for each sheet, as if it were the only one."""
    first = "IN;\nSP1;\n" if "PG" in between else "G21\nG90\nG94\nG0 Z5\n"
    last = "PU0,0;\nSP0;\n" if "PG" in between else "G0 X0 Y0\nM2\n"
    parts = text.removeprefix(first).removesuffix(last).split(between)
    return [f"{first}{part}{last}" for part in parts]


@pytest.mark.parametrize("name", ["to the edges", "wandering"])
def test_strokes_in_our_order_are_sorted_no_better(
    case: Callable[[str], Case], tmp_path: Path, name: str
) -> None:
    """vpype goes to the nearest next as well, from the stroke that comes first."""
    page = case(name)
    ours = of_gcode(page.gcode)
    layout = replace(sheet(page.size_mm[0] / MM_PER_PX), page_height_px=page.size_mm[1] / MM_PER_PX)
    down_px = [(s * (1, -1) + (0, page.size_mm[1])) / MM_PER_PX for s in ours]
    again = asked(tmp_path, to_plotter_svg([down_px], layout))
    assert again.told.up < page.read.told.up
    assert again.told.up == pytest.approx(again.of_sorted.up, rel=1e-3)


def test_dots_and_ink_at_the_edges_are_not_left_out(tmp_path: Path) -> None:
    """Of an A4 page in px, whose size in mm has no end."""
    width_px = 210 / MM_PER_PX
    around = [(10, 10), (900, 10), (900, 90), (-9, 90), (-9, -9), (900, -9)]
    dots = [(x, 50) for x in range(0, 800, 7)]
    lines = [[np.array([*around], float)], [np.array([dot], float) for dot in dots]]
    read = asked(tmp_path, to_plotter_svg(lines, sheet(width_px=width_px)))
    assert read.told.paths == 1 + len(dots)
    assert len(read.in_hpgl) == 1 + len(dots)
    assert len(read.in_gcode[0]) == len(around)
