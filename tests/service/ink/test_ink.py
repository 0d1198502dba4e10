"""Ink goes from offsets to pictures without loss, and the same ink always to the same bytes."""

import io
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from service.ink.inkml import NAMESPACE, to_inkml
from service.ink.layout import LONGEST_LINE, Layout, break_text
from service.ink.measure import measure
from service.ink.pen import LinePen, strokes
from service.ink.png import to_png
from service.ink.svg import curve, to_svg

_SVG = "{http://www.w3.org/2000/svg}"
_INKML = f"{{{NAMESPACE}}}"
_HALF_A_HUNDREDTH = 0.005 + 1e-9  # what rounding to two decimals moves a coordinate at most

Points = NDArray[np.float64]


def _layout(width_px: int = 400, line_height_px: float = 40.0) -> Layout:
    return Layout(
        width_px=width_px,
        line_height_px=line_height_px,
        stroke_width_px=3.0,
        color="#1a2b3c",
        units_per_line=3.0,
        units_per_character=0.9,
    )


def _offsets(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Offsets like those of a model, about one in ten with the pen up."""
    random = np.random.default_rng(seed)
    offsets = random.normal(0.05, 0.3, (count, 3)).astype(np.float32)
    offsets[:, 2] = random.random(count) < 0.1
    return offsets


def _uneven_offsets(count: int) -> NDArray[np.float32]:
    """Offsets of such different sizes that their sums in float64 round."""
    sizes = np.exp2(np.random.default_rng(1).uniform(-40, 4, (count, 1))).astype(np.float32)
    return np.concatenate([_offsets(count)[:, :2] * sizes, _offsets(count)[:, 2:]], axis=1)


def _ink(seed: int = 0) -> list[Points]:
    return strokes(LinePen(_layout(), 1).move(_offsets(200, seed)))


def _segments(path: str) -> list[Points]:
    """The Béziers of path data, `(4, 2)` each; a line of no length is none."""
    start, *rest = re.findall(r"([MCL])([^MCL]*)", path)
    assert start[0] == "M"
    last, segments = _numbers(start[1]), []
    for command, numbers in rest:
        points = _numbers(numbers)
        if command == "C":
            segments.append(np.concatenate([last, points]))
        last = points[-1:]
    return segments


def _numbers(text: str) -> Points:
    return np.array(text.replace(",", " ").split(), float).reshape(-1, 2)


def _bezier(segment: Points, t: float) -> Points:
    weights = np.array([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    return np.asarray(weights @ segment)


def _paths(svg: str) -> list[str]:
    return [path.attrib["d"] for path in ElementTree.fromstring(svg).iter(f"{_SVG}path")]


def _image(svg: str) -> NDArray[np.uint8]:
    """The brightness of every pixel, `(height, width)`."""
    return np.asarray(Image.open(io.BytesIO(to_png(svg))).convert("L"))


@pytest.mark.parametrize("portion", [1, 2, 7, 100, 499])
def test_portions_of_any_size_give_the_bits_of_the_whole(portion: int) -> None:
    offsets = _uneven_offsets(500)
    whole = LinePen(_layout(), 3).move(offsets)
    pen = LinePen(_layout(), 3)
    portions = [pen.move(offsets[i : i + portion]) for i in range(0, len(offsets), portion)]
    assert np.concatenate(portions).tobytes() == whole.tobytes()


def test_a_sum_begun_anew_with_each_portion_would_have_other_bits() -> None:
    moves = _uneven_offsets(500)[:, :2].astype(np.float64)
    anew = moves[:7].sum(axis=0) + moves[7:].cumsum(axis=0)
    assert (anew != moves.cumsum(axis=0)[7:]).any()


def test_a_portion_of_no_offsets_moves_nothing() -> None:
    pen, offsets = LinePen(_layout(), 0), _offsets(6)
    assert pen.move(offsets[:0]).shape == (0, 3)
    first, nothing, rest = pen.move(offsets[:2]), pen.move(offsets[:0]), pen.move(offsets[2:])
    assert nothing.shape == (0, 3)
    whole = LinePen(_layout(), 0).move(offsets)
    assert np.concatenate([first, rest]).tobytes() == whole.tobytes()


def test_a_point_of_one_stroke_stands_where_plain_arithmetic_puts_it() -> None:
    offsets = _offsets(50)
    offsets[:, 2] = 0
    (x, y), scale = _layout().origin_px(2), 40.0 / 3.0
    for offset, point in zip(offsets, LinePen(_layout(), 2).move(offsets), strict=True):
        x, y = x + float(offset[0]) * scale, y - float(offset[1]) * scale
        assert point == pytest.approx([x, y, offset[2]], abs=1e-9)


def _zigzags(letters: int, climb: float) -> np.ndarray:
    """Letters of a down-stroke and an up-stroke three units high, each `climb` above the last."""
    letter = [[1, 3 + climb, 0], [0, -3, 0], [1, 0, 0], [0, 3, 1], [1, -3, 0]]
    return np.array(letter * letters, np.float32)


@pytest.mark.parametrize("climb", [-0.3, 0.3])
def test_a_line_that_climbs_or_sinks_is_kept_on_the_ruled_line(climb: float) -> None:
    layout = _layout()
    points = LinePen(layout, 0).move(_zigzags(60, climb))
    low = layout.origin_px(0)[1] - points[5 * 50 + 1 :: 5, 1]
    left_alone = 60 * abs(climb) * layout.px_per_unit
    assert np.abs(low).max() < 0.2 * left_alone


def test_level_ink_is_left_where_it_is() -> None:
    offsets = _zigzags(40, 0.0)
    points = LinePen(_layout(), 0).move(offsets)
    plain = offsets[:, 1].astype(float).cumsum()
    assert (_layout().origin_px(0)[1] - points[:, 1]) / _layout().px_per_unit == pytest.approx(
        plain, abs=1e-6
    )


def test_strokes_end_where_the_pen_leaves_the_paper() -> None:
    points = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 1], [3, 3, 0], [4, 4, 0]], float)
    assert [stroke.tolist() for stroke in strokes(points)] == [
        [[0, 0], [1, 1]],
        [[2, 2]],
        [[3, 3], [4, 4]],
    ]
    assert strokes(points[:0]) == []


@pytest.mark.parametrize("lines", [1, 2, 9])
def test_every_baseline_is_on_the_page(lines: int) -> None:
    layout = _layout()
    baselines = [layout.origin_px(line)[1] for line in range(lines)]
    assert np.diff(baselines) == pytest.approx(40.0)
    assert baselines[0] > 0
    assert baselines[-1] < layout.height_px(lines) - layout.margin_px


@pytest.mark.parametrize(("width_px", "characters"), [(50, 8), (400, 27), (10_000, LONGEST_LINE)])
def test_a_line_is_as_long_as_the_page_and_the_model_allow(width_px: int, characters: int) -> None:
    assert _layout(width_px).characters_per_line == characters


_TEXTS = [
    "",
    "word",
    "The quick  brown\tfox jumps   over the lazy dog.",
    "a well-known half-truth - and an em-dash—here, without spaces around",
    "Donaudampfschifffahrtsgesellschaftskapitän and his ship",
    "one\n\ntwo three\r\nfour\n   \nfive",
    " leading and trailing ",
    "\n",
]


@pytest.mark.parametrize("longest", [1, 5, 8, 60])
@pytest.mark.parametrize("text", _TEXTS)
def test_broken_text_loses_nothing_but_spaces_and_fits(text: str, longest: int) -> None:
    lines = break_text(text, longest)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(len(line) <= longest for line in lines)
    assert all(line == " ".join(line.split()) for line in lines)


def test_lines_break_at_spaces_and_where_the_writer_broke_them() -> None:
    assert break_text("well-known  words go on\n\nhere", 11) == [
        "well-known",
        "words go on",
        "",
        "here",
    ]


def test_a_line_is_filled_before_the_next_begins() -> None:
    for line, following in pairwise(break_text(_TEXTS[2], 12)):
        assert len(f"{line} {following.split()[0]}") > 12


@pytest.mark.parametrize("seed", range(5))
def test_the_curve_passes_through_every_point(seed: int) -> None:
    for stroke in _ink(seed):
        segments = _segments(curve(stroke))
        passed = np.array(
            [segment[0] for segment in segments] + [segment[3] for segment in segments]
        )
        for point in stroke if len(stroke) > 1 else []:
            assert np.abs(passed - point).max(axis=1).min() <= _HALF_A_HUNDREDTH


def test_the_curve_has_one_direction_at_a_point() -> None:
    points = np.array([[0, 0], [100, 30], [140, 200], [150, 190], [400, 0]], float)
    for before, after in pairwise(_segments(curve(points))):
        arriving, leaving = before[3] - before[2], after[1] - after[0]
        cosine = arriving @ leaving / np.linalg.norm(arriving) / np.linalg.norm(leaving)
        assert cosine > 0.99999


def test_the_curve_is_the_centripetal_spline() -> None:
    """Against the pyramid of Barry and Goldman, on which centripetal Catmull-Rom is defined."""
    points = np.array([[0, 0], [50, 80], [60, 70], [200, 75]], float)
    knots = np.cumsum([0, *np.sqrt(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    segment = _segments(curve(points))[1]
    for part in (0.1, 0.5, 0.8):
        at, level = knots[1] + part * (knots[2] - knots[1]), list(points)
        for low, high in (([0, 1, 2], [1, 2, 3]), ([0, 1], [2, 3]), ([1], [2])):
            ends = [(knots[i], knots[j]) for i, j in zip(low, high, strict=True)]
            level = [
                (a * (end - at) + b * (at - start)) / (end - start)
                for (start, end), a, b in zip(ends, level, level[1:], strict=False)
            ]
        assert _bezier(segment, part) == pytest.approx(level[0], abs=0.02)


def test_two_points_are_joined_by_a_straight_line() -> None:
    (segment,) = _segments(curve(np.array([[1.0, 2.0], [31.0, 17.0]])))
    assert segment[:, 1] - 2 == pytest.approx((segment[:, 0] - 1) / 2)


def test_repeated_points_change_no_curve() -> None:
    points = _ink()[0]
    repeated = np.repeat(points, 3, axis=0)
    assert curve(repeated) == curve(points)
    assert curve(repeated[:3]) == curve(points[:1])


def test_coordinates_have_two_decimals_at_most_however_large() -> None:
    path = curve(np.array([[12345.6789, 1e6 / 3], [54321.1234, 2e6 / 3]]))
    assert "e" not in path
    numbers = re.findall(r"[\d.]+", path)
    assert all(len(number.partition(".")[2]) <= 2 for number in numbers)
    assert numbers[:2] == ["12345.68", "333333.33"]


def test_the_same_ink_gives_the_same_bytes() -> None:
    first, second = (to_svg(_ink(), _layout(), 2, "text") for _ in range(2))
    assert first == second
    assert to_png(first) == to_png(second)
    assert to_inkml(_ink(), "text") == to_inkml(_ink(), "text")


def test_equal_strokes_are_all_drawn() -> None:
    stroke = _ink()[0]
    svg = to_svg([stroke, stroke, stroke.copy()], _layout(), 1)
    assert _paths(svg) == [curve(stroke)] * 3
    assert "id=" not in svg.replace("width=", "")


@pytest.mark.parametrize("text", ['a < b & "c" > d', "two\nlines", "naïve 😀", "]]>"])
def test_drawing_and_ink_file_say_the_text(text: str) -> None:
    root = ElementTree.fromstring(to_svg(_ink(), _layout(), 2, text).encode())
    assert root.attrib["role"] == "img"
    assert root.attrib["viewBox"] == f"0 0 400 {_layout().height_px(2)}"
    assert root.findtext(f"{_SVG}title") == text
    assert ElementTree.fromstring(to_inkml([], text)).findtext(f"{_INKML}annotation") == text


@pytest.mark.parametrize("character", ["\0", "\x1b", "\ufffe", "\udc80"])
def test_characters_that_xml_has_not_are_replaced(character: str) -> None:
    root = ElementTree.fromstring(to_svg([], _layout(), 1, f"a{character}b").encode())
    assert root.findtext(f"{_SVG}title") == "a\ufffdb"
    ink = ElementTree.fromstring(to_inkml([], f"a{character}b").encode())
    assert ink.findtext(f"{_INKML}annotation") == "a\ufffdb"


def test_the_image_is_dark_exactly_where_the_ink_is() -> None:
    ink = [np.array([[50.0, 40.0], [200.0, 60.0], [350.0, 30.0]])]
    image = _image(to_svg(ink, _layout(), 2))
    assert image.shape == (_layout().height_px(2), 400)
    drawn = np.zeros_like(image, bool)
    for segment in _segments(curve(ink[0])):
        for t in np.linspace(0, 1, 400):
            x, y = _bezier(segment, t).astype(int)
            drawn[y, x] = True
            assert image[y, x] < 100
    dark = np.argwhere(image < 255)
    on_curve = np.argwhere(drawn)
    distances = np.abs(dark[:, None] - on_curve[None]).max(axis=2).min(axis=1)
    assert distances.max() <= 3  # half of a stroke three px wide, and its soft edge


def test_a_dot_is_visible_and_round() -> None:
    image = _image(to_svg([np.array([[100.5, 50.5]])], _layout(), 2))
    assert image[50, 100] < 60
    rows, columns = np.nonzero(image < 128)
    assert [int(np.ptp(rows)), int(np.ptp(columns))] == [2, 2]


@pytest.mark.parametrize("lines", [0, 1, 3])
def test_no_ink_is_a_white_page(lines: int) -> None:
    svg = to_svg([], _layout(), lines, "")
    assert _paths(svg) == []
    image = _image(svg)
    assert image.shape == (_layout().height_px(lines), 400)
    assert image.min() == 255
    assert to_png(svg).startswith(b"\x89PNG\r\n\x1a\n")


def test_an_ink_file_gives_the_coordinates_back() -> None:
    ink = _ink()
    root = ElementTree.fromstring(to_inkml(ink, "text").encode())
    channels = [channel.attrib["name"] for channel in root.iter(f"{_INKML}channel")]
    assert channels == ["X", "Y"]
    traces = [str(trace.text) for trace in root.findall(f"{_INKML}trace")]
    for stroke, trace in zip(ink, traces, strict=True):
        points = np.array([point.split() for point in trace.split(",")], float)
        assert points.shape == stroke.shape
        assert np.abs(points - stroke).max() <= _HALF_A_HUNDREDTH


def _fence(lean_degrees: float, noise: float = 0.0) -> NDArray[np.float32]:
    """Forty pickets two units high, joined by arches, sheared; the pen is lifted at each tenth."""
    random = np.random.default_rng(1)
    picket = np.stack([np.zeros(20), np.linspace(2, 0, 20)], axis=1)
    rise = np.linspace(0, 1, 20)
    arch = np.stack([0.5 - 0.5 * np.cos(np.pi * rise), 2 * rise], axis=1)
    unit = np.concatenate([picket, arch])
    points = np.concatenate([unit + np.array([i, 0]) for i in range(40)])
    points[:, 0] += points[:, 1] * np.tan(np.radians(lean_degrees))
    points += random.normal(0, noise, points.shape)
    offsets = np.diff(points, axis=0, prepend=np.zeros((1, 2)))
    pen_up = (np.arange(len(points)) % 400 == 399)[:, None]
    return np.concatenate([offsets, pen_up], axis=1, dtype=np.float32)


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("lean_degrees", [-35, -10, 0, 5, 12.5, 30, 45])
def test_the_slant_is_the_lean_of_the_down_strokes(lean_degrees: float, noise: float) -> None:
    slant = measure(_fence(lean_degrees, noise), 40).slant_degrees
    assert slant == pytest.approx(lean_degrees, abs=2)


def test_size_speed_and_advance_grow_with_the_writing() -> None:
    small = _fence(10)
    large = small * np.array([2, 2, 1], np.float32)
    one, two = measure(small, 40), measure(large, 40)
    assert one.size_units == pytest.approx(1.6, abs=0.05)
    assert one.units_per_character == pytest.approx(1, abs=0.05)
    assert two.size_units == pytest.approx(2 * one.size_units, rel=1e-5)
    assert two.units_per_point == pytest.approx(2 * one.units_per_point, rel=1e-5)
    assert two.slant_degrees == one.slant_degrees


def test_the_way_between_strokes_is_not_speed() -> None:
    offsets = np.array([[50, 9, 0], [3, 4, 1], [80, -70, 0], [0, 5, 1]], np.float32)
    assert measure(offsets, 2).units_per_point == 5


@pytest.mark.parametrize("count", [0, 1])
def test_what_has_no_ink_measures_nothing(count: int) -> None:
    measures = measure(np.ones((count, 3), np.float32), 0)
    assert measures.slant_degrees == measures.size_units == measures.units_per_point == 0
