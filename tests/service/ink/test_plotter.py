"""What a plotter is told is the ink of the page, within half of the unit it is told in."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from service.ink.pen import LinePen, strokes
from service.ink.plotter import to_gcode, to_hpgl, to_plotter_svg
from tests.service.ink.sheets import sheet, some_offsets
from tests.service.writing import InkService

Points = NDArray[np.float64]
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


def _of_hpgl(text: str) -> list[Points]:
    """The strokes of a pen that follows HP-GL, in mm."""
    drawn: list[list[list[float]]] = []
    start, *commands, end = [command.strip() for command in text.split(";")]
    assert (start, commands[0], commands[-1], end) == ("IN", "SP1", "SP0", "")
    for command in commands[1:-1]:
        numbers = [int(number) for number in command[2:].split(",")]
        places = [[x / 40, y / 40] for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        if command[:2] == "PU":
            drawn.append(places)
        else:
            assert command[:2] == "PD"
            drawn[-1] += places
    assert drawn.pop() == [[0, 0]]
    return [np.array(stroke) for stroke in drawn]


def _of_gcode(text: str) -> list[Points]:
    """The strokes of a pen that follows G-code, in mm."""
    drawn: list[list[list[float]]] = []
    at, is_up = [0.0, 0.0], False
    for line in text.splitlines():
        words = {word[0]: float(word[1:]) for word in line.split()}
        if "Z" in words:
            is_up = words["Z"] > 0
            if not is_up:
                drawn.append([at])
        elif "X" in words:
            at = [words["X"], words["Y"]]
            assert (words["G"] == 0) == is_up, "the pen writes no faster than told"
            if not is_up:
                drawn[-1].append(at)
    assert is_up
    return [np.array(stroke) for stroke in drawn]


def _of_svg(text: str) -> list[Points]:
    """The strokes of a drawing, in mm."""
    root = ElementTree.fromstring(text)
    width, height = (float(root.attrib[name].removesuffix("mm")) for name in ("width", "height"))
    assert root.attrib["viewBox"].split() == ["0", "0", f"{width}", f"{height}"]
    paths = [e.attrib["d"] for e in root.iter() if e.tag.endswith("}path")]
    numbers = [re.findall(r"-?[\d.]+", path) for path in paths]
    return [np.array(found, float).reshape(-1, 2) for found in numbers]


def _assert_same(drawn: list[Points], expected: list[Points], tolerance: float) -> None:
    assert len(drawn) == len(expected)
    for one, other in zip(drawn, expected, strict=True):
        if len(other) == 1 and len(one) == 2:  # a dot is a line of no length
            other = np.repeat(other, 2, axis=0)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


def _as_written(drawn: list[Points], written: list[Points]) -> list[Points]:
    """All strokes in the order and the direction in which they were written."""

    def apart(one: Points, other: Points) -> float:
        return float(np.abs(one[[0, -1]] - other[[0, -1]]).max() + abs(len(one) - len(other)) // 2)

    left, found = [*drawn, *(stroke[::-1] for stroke in drawn)], []
    for stroke in written:
        nearest = min(range(len(left)), key=lambda n: apart(left[n], stroke))
        found.append(left[nearest])
        twin = (nearest + len(left) // 2) % len(left)
        left = [s for n, s in enumerate(left) if n not in (nearest, twin)]
    assert left == []
    return found


def _in_the_air(strokes: list[Points]) -> float:
    """How far a pen goes between them, from the corner and back."""
    corner = np.zeros(2)
    ways = zip([corner, *(s[-1] for s in strokes)], [*(s[0] for s in strokes), corner], strict=True)
    return sum(float(np.hypot(*(end - begin))) for begin, end in ways)


def test_hpgl_draws_the_ink_of_the_page() -> None:
    drawn = _upside_down(_of_hpgl(to_hpgl(_lines(), sheet())))
    _assert_same(_as_written(drawn, _expected_mm(_ink())), _expected_mm(_ink()), _HALF_A_UNIT)


def test_gcode_draws_the_ink_of_the_page() -> None:
    drawn = _upside_down(_of_gcode(to_gcode(_lines(), sheet())))
    _assert_same(_as_written(drawn, _expected_mm(_ink())), _expected_mm(_ink()), _HALF_A_MICRON)


def test_the_nearest_stroke_is_next_from_its_nearer_end() -> None:
    """Above the lower left corner of a page of 80 px, far, near and between."""
    ends = [(300, 330), (130, 100), (200, 170)]
    lines = [[np.array([[begin, 80.0], [end, 80]]) for begin, end in ends]]
    drawn = _of_gcode(to_gcode(lines, sheet()))
    way_px = [round(x * _PX_PER_INCH / _MM_PER_INCH) for stroke in drawn for x, _ in stroke]
    assert way_px == [100, 130, 170, 200, 300, 330]
    assert [len(s) for s in _of_hpgl(to_hpgl(lines, sheet()))] == [2, 2, 2]


def test_what_is_written_the_short_way_stays_as_it_is() -> None:
    """Where always the nearest is a sixth further."""
    lines = [[np.array([[10.0 * x, 80 - 10.0 * y]]) for x, y in [(1, 7), (10, 8), (6, 1)]]]
    drawn = [s[0] * _PX_PER_INCH / _MM_PER_INCH for s in _of_gcode(to_gcode(lines, sheet()))]
    np.testing.assert_allclose(drawn, [(10, 70), (100, 80), (60, 10)], atol=0.01)


def test_a_pen_goes_no_further_through_the_air_than_in_writing() -> None:
    written_mm = _in_the_air(_upside_down(_expected_mm(_ink())))
    for drawn in (_of_gcode(to_gcode(_lines(), sheet())), _of_hpgl(to_hpgl(_lines(), sheet()))):
        assert _in_the_air(drawn) < 0.9 * written_mm


def test_the_drawing_for_plotters_draws_the_ink_of_the_page() -> None:
    text = to_plotter_svg(_lines(), sheet())
    _assert_same(_of_svg(text), _expected_mm(_ink()), _HALF_A_MICRON)
    assert ElementTree.fromstring(text).attrib["width"] == "105.833mm"


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
    assert _of_svg(to_plotter_svg(lines, layout))[2 * per_sheet] == pytest.approx(
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
        ("hpgl", "application/vnd.hp-hpgl", _of_hpgl),
        ("gcode", "text/x.gcode", _of_gcode),
        ("plotter-svg", "image/svg+xml", _of_svg),
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
    points = [len(s) if read is _of_gcode else max(2, len(s)) for s in page]
    assert sorted(map(len, drawn)) == sorted(points)
    assert list(map(len, drawn)) == points or read is not _of_svg


def test_the_nearest_is_so_in_a_straight_line() -> None:
    written = [(10, 80), (20, 10), (60, 40), (70, 0)]
    lines = [[np.array([[x, 80.0 - y]]) for x, y in written]]
    told = [s[0] * _PX_PER_INCH / _MM_PER_INCH for s in _of_gcode(to_gcode(lines, sheet()))]
    np.testing.assert_allclose(told, [*written[1:], written[0]], atol=0.01)
