"""What a plotter is told is the ink of the page, within half of the unit it is told in."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from service.ink import plotter
from service.ink.pen import LinePen, strokes
from service.ink.plotter import to_gcode, to_hpgl, to_plotter_svg
from tests.service.ink.plotted import Points, as_written, in_the_air, of_gcode, of_hpgl, of_svg
from tests.service.ink.sheets import sheet, some_offsets
from tests.service.writing import InkService

_SVG = "{http://www.w3.org/2000/svg}"
_MM_PER_INCH, _PX_PER_INCH = 25.4, 96
_HALF_A_MICRON = 0.0005 + 1e-9
_HALF_A_UNIT = 1 / 80 + 1e-9  # of HP-GL, in mm
_REQUEST = {"text": "Even keel\nis on", "seed": 3, "width": 400}


def _lines() -> list[list[Points]]:
    """Two lines, the first without ink."""
    return [[], _ink()]


def _ink() -> list[Points]:
    """Strokes in px; the last is a dot, the one before leaves the page on every side."""
    ink = strokes(LinePen(sheet(), 1).move(some_offsets(200)))
    beyond = np.array([[-50.0, 20], [900, 20], [30, -70], [30, 900]])
    return [*ink, beyond, np.array([[120.0, 60]])]


def _expected_mm(ink: list[Points]) -> list[Points]:
    """The ink on its page, y down; the page is 400 px wide and 120 px high."""
    return [np.clip(s, 0, (400, 120)) * _MM_PER_INCH / _PX_PER_INCH for s in ink]


def _upside_down(drawn: list[Points]) -> list[Points]:
    return [stroke * (1, -1) + (0, 120 * _MM_PER_INCH / _PX_PER_INCH) for stroke in drawn]


def _assert_same(drawn: list[Points], expected: list[Points], tolerance: float) -> None:
    assert len(drawn) == len(expected)
    for one, other in zip(drawn, expected, strict=True):
        if len(other) == 1 and len(one) == 2:  # a dot is a line of no length
            other = np.repeat(other, 2, axis=0)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


def test_hpgl_draws_the_ink_of_the_page() -> None:
    drawn = _upside_down(of_hpgl(to_hpgl(_lines(), sheet())))
    _assert_same(as_written(drawn, _expected_mm(_ink())), _expected_mm(_ink()), _HALF_A_UNIT)


def test_gcode_draws_the_ink_of_the_page() -> None:
    drawn = _upside_down(of_gcode(to_gcode(_lines(), sheet())))
    _assert_same(as_written(drawn, _expected_mm(_ink())), _expected_mm(_ink()), _HALF_A_MICRON)


def test_the_nearest_stroke_is_next_from_its_nearer_end() -> None:
    """In tens of px from the lower left corner of a page of 80 px; begun otherwise the way is
    further, its parts turned round or not."""
    written = [(5, 6, 12, 2), (13, 8, 8, 5), (6, 0, 8, 1), (13, 1, 4, 4)]
    ink = [np.array([[x, 8 - y], [to_x, 8 - to_y]]) * 10 for x, y, to_x, to_y in written]
    drawn = of_gcode(to_gcode([ink], sheet()))
    way = np.array([s.ravel() for s in drawn]) * _PX_PER_INCH / _MM_PER_INCH / 10
    expected = [(4, 4, 13, 1), (12, 2, 5, 6), (8, 5, 13, 8), (8, 1, 6, 0)]
    np.testing.assert_allclose(way, expected, atol=0.001)
    assert [len(s) for s in of_hpgl(to_hpgl([ink], sheet()))] == [2, 2, 2, 2]


def _dots(tens_px: list[tuple[int, int]]) -> list[list[Points]]:
    """Dots on a page of 80 px, in tens of px from its lower left corner."""
    return [[np.array([[10.0 * x, 80 - 10.0 * y]]) for x, y in tens_px]]


def _way(gcode: str) -> list[tuple[int, int]]:
    """Where the strokes begin, in the same."""
    tens_px = [stroke[0] * _PX_PER_INCH / _MM_PER_INCH / 10 for stroke in of_gcode(gcode)]
    return [(round(x), round(y)) for x, y in tens_px]


def test_what_is_written_a_short_way_is_not_begun_with_the_nearest() -> None:
    """That way has, with its parts turned round, a twelfth more."""
    written = [(1, 5), (2, 6), (6, 4), (6, 6), (9, 2), (4, 3)]
    way = _way(to_gcode(_dots(written), sheet()))
    assert way == [(1, 5), (2, 6), (6, 6), (6, 4), (9, 2), (4, 3)]


@pytest.mark.parametrize("longest", [500, 7])
def test_no_part_of_a_way_is_shorter_gone_through_backwards(
    longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But by less than a micron, or where the part has more strokes than are looked at."""
    monkeypatch.setattr(plotter, "_LONGEST_PART", longest)
    random = np.random.default_rng(5)
    ink = [random.uniform(0, 60, (1, 2)) + random.uniform(0, 12, (3, 2)) for _ in range(40)]
    drawn = of_gcode(to_gcode([ink], sheet()))
    found, expected = (
        [tuple(sorted(s[[0, -1], 0])) for s in way] for way in (drawn, _expected_mm(ink))
    )
    np.testing.assert_allclose(sorted(found), sorted(expected), atol=_HALF_A_MICRON)
    way_mm = in_the_air(drawn)
    for first in range(len(drawn)):
        for after in range(first + 1, min(first + longest, len(drawn)) + 1):
            part = [stroke[::-1] for stroke in reversed(drawn[first:after])]
            assert in_the_air([*drawn[:first], *part, *drawn[after:]]) > way_mm - 0.005


def test_a_pen_goes_no_further_through_the_air_than_in_writing() -> None:
    written_mm = in_the_air(_upside_down(_expected_mm(_ink())))
    for drawn in (of_gcode(to_gcode(_lines(), sheet())), of_hpgl(to_hpgl(_lines(), sheet()))):
        assert in_the_air(drawn) < 0.9 * written_mm


def test_the_drawing_for_plotters_draws_the_ink_of_the_page() -> None:
    """But for the ends of dots and the ink at an edge, of which the next two tests tell."""
    text = to_plotter_svg(_lines(), sheet())
    pairs = zip(of_svg(text), _expected_mm(_ink()), strict=True)
    *drawn, (beyond, at_the_edge), dot = [(one[: len(other)], other) for one, other in pairs]
    for one, other in (*drawn, dot):
        np.testing.assert_allclose(one, other, rtol=0, atol=_HALF_A_MICRON)
    np.testing.assert_allclose(beyond, at_the_edge, rtol=0, atol=3 * _HALF_A_MICRON)
    assert ElementTree.fromstring(text).attrib["width"] == "105.833mm"


def test_a_dot_of_the_drawing_has_a_length() -> None:
    """Programs that read drawings for plotters leave out paths that have none."""
    places = [*((0.24 * n, 60.0) for n in range(1, 400)), (900.0, 900.0)]  # halves of a micron
    dots = [np.array([place] * count) for place in places for count in (1, 3)]
    for dot in of_svg(to_plotter_svg([dots], sheet())):
        assert 0 < np.hypot(*(dot[-1] - dot[0])) < 3 * _HALF_A_MICRON


@pytest.mark.parametrize("width_px", [794, 400, 402, 234])
def test_ink_beyond_the_page_is_within_it_in_numbers_that_were_rounded(width_px: int) -> None:
    """Programs that read drawings for plotters leave out what is beyond an edge by the least, and
    find so in px what is at it in mm; 234 px are 61.9125 mm."""
    text = to_plotter_svg(_lines(), sheet(width_px=width_px))
    _, _, width_mm, height_mm = map(float, ElementTree.fromstring(text).attrib["viewBox"].split())
    x_mm, y_mm = np.concatenate(of_svg(text)).T
    assert width_mm - 3 * _HALF_A_MICRON < x_mm.max() < width_mm
    assert height_mm - 3 * _HALF_A_MICRON < y_mm.max() < height_mm
    assert x_mm.min() == y_mm.min() == 0


@pytest.mark.parametrize(("height_px", "per_sheet"), [(90, 1), (130, 2)])
def test_each_sheet_is_plotted_from_its_own_corner_and_the_machine_waits_between_two(
    height_px: int, per_sheet: int
) -> None:
    layout = replace(sheet(), page_height_px=height_px)
    stroke, down = np.array([[30.0, 20], [60, 50]]), np.array([0, height_px])
    lines = [[stroke + number * down] for number in range(3) for _ in range(per_sheet)]
    hpgl, gcode = to_hpgl(lines, layout), to_gcode(lines, layout)
    assert hpgl.count("PU0,0;\nPG;") == gcode.count("G0 X0 Y0\nM0\n") == 2
    without = [*([[]] * per_sheet), lines[per_sheet]]  # a sheet without ink
    assert to_gcode(without, layout).count("M0") == 0
    for drawn in (
        re.findall(r"PU[1-9].*\nPD.*", hpgl),
        re.findall(r"G0 X[1-9].*\nG1.*\nG1.*", gcode),
    ):
        assert drawn == drawn[:per_sheet] * 3
        assert len(drawn) == 3 * per_sheet
    assert of_svg(to_plotter_svg(lines, layout))[2 * per_sheet] == pytest.approx(
        (stroke + 2 * down) * _MM_PER_INCH / _PX_PER_INCH, abs=_HALF_A_MICRON
    )


def test_a_machine_is_told_its_units_and_how_fast_to_write() -> None:
    """On a page 80 px high an inch along a line, 20 px from below."""
    lines = [[np.array([[0.0, 60], [96, 60]])]]
    begin, end = ["G21", "G90", "G94", "G0 Z5"], ["G0 Z5", "G0 X0 Y0", "M2"]
    draw = ["G0 X0.000 Y5.292", "G1 Z0 F1500", "G1 X25.400 Y5.292"]
    assert to_gcode(lines, sheet()).splitlines() == [*begin, *draw, *end]
    draw = ["PU0,212;", "PD1016,212;"]
    assert to_hpgl(lines, sheet()).splitlines() == ["IN;", "SP1;", *draw, "PU0,0;", "SP0;"]
    (ink,) = ElementTree.fromstring(to_plotter_svg(lines, sheet())).iter(f"{_SVG}g")
    assert ink.attrib == {"fill": "none", "stroke": "#1a2b3c", "stroke-width": "0.4"}


@pytest.mark.parametrize("write", [to_hpgl, to_gcode, to_plotter_svg])
def test_a_page_without_ink_moves_no_pen_down(write: object) -> None:
    text = write([[]], sheet())  # type: ignore[operator]
    assert not re.search("PD|G1|<path", text)


@pytest.mark.parametrize(
    ("format_", "media_type", "read"),
    [
        ("hpgl", "application/vnd.hp-hpgl", of_hpgl),
        ("gcode", "text/x.gcode", of_gcode),
        ("plotter-svg", "image/svg+xml", of_svg),
    ],
)
def test_the_service_answers_for_plotters(
    ink: InkService, format_: str, media_type: str, read: object
) -> None:
    answer = ink.post(**_REQUEST, format=format_)
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == media_type
    assert answer.headers["x-evenkeel-seed"] == "3"
    drawn = read(answer.text)  # type: ignore[operator]
    page = [stroke for line in ink.strokes(**_REQUEST) for stroke in line]
    points = [len(s) if read is of_gcode else max(2, len(s)) for s in page]
    assert sorted(map(len, drawn)) == sorted(points)
    assert list(map(len, drawn)) == points or read is not of_svg


def test_the_nearest_is_so_in_a_straight_line() -> None:
    written = [(4, 2), (4, 6), (10, 2), (1, 5), (6, 0), (8, 5)]
    way = [(4, 2), (6, 0), (10, 2), (8, 5), (4, 6), (1, 5)]
    assert _way(to_gcode(_dots(written), sheet())) == way
