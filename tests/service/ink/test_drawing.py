"""Strokes become drawings, images and ink files without loss, always with the same bytes."""

import gc
import io
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from service.errors import DeadlineExceeded
from service.ink import png
from service.ink.curve import beziers, path
from service.ink.inkml import NAMESPACE, to_inkml
from service.ink.paper import rules
from service.ink.pen import LinePen, strokes
from service.ink.png import to_png
from service.ink.svg import to_svg
from tests.service.ink.sheets import sheet, some_offsets

_SVG = "{http://www.w3.org/2000/svg}"
_INKML = f"{{{NAMESPACE}}}"
_HALF_A_HUNDREDTH = 0.005 + 1e-9  # what rounding to two decimals moves a coordinate at most

Points = NDArray[np.float64]


def _ink(seed: int = 0) -> list[Points]:
    return strokes(LinePen(sheet(), 1).move(some_offsets(200, seed)))


def curve(stroke: Points) -> str:
    """The path data of a stroke."""
    return path(*beziers(stroke))


def _segments(data: str) -> list[Points]:
    """The Béziers of path data, `(4, 2)` each; a line of no length is none."""
    start, *rest = re.findall(r"([MCL])([^MCL]*)", data)
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


def test_a_curve_begins_and_ends_along_the_line_to_the_point_beside() -> None:
    points = np.array([[0, 0], [50, 80], [60, 70], [200, 75]], float)
    first, _, last = _segments(curve(points))
    assert first[1] == pytest.approx(points[1] / 3, abs=0.01)
    assert last[2] == pytest.approx(points[3] - (points[3] - points[2]) / 3, abs=0.01)


def test_two_points_are_joined_by_a_straight_line() -> None:
    (segment,) = _segments(curve(np.array([[1.0, 2.0], [31.0, 17.0]])))
    assert segment[:, 1] - 2 == pytest.approx((segment[:, 0] - 1) / 2)


def test_repeated_points_change_no_curve() -> None:
    points = _ink()[0]
    repeated = np.repeat(points, 3, axis=0)
    assert curve(repeated) == curve(points)
    assert curve(repeated[:3]) == curve(points[:1])
    nearly = points.round(2)[:, None] + np.array([0.0, 0.004])[:, None]  # shown as the same
    assert curve(nearly.reshape(-1, 2)) == curve(points)


def test_coordinates_have_two_decimals_at_most_however_large() -> None:
    path = curve(np.array([[12345.6789, 1e6 / 3], [54321.1234, 2e6 / 3]]))
    assert "e" not in path
    numbers = re.findall(r"[\d.]+", path)
    assert all(len(number.partition(".")[2]) <= 2 for number in numbers)
    assert numbers[:2] == ["12345.68", "333333.33"]


def test_the_same_ink_gives_the_same_bytes() -> None:
    first, second = (to_svg(_ink(), sheet(), 2, "text") for _ in range(2))
    assert first == second
    assert to_png(first) == to_png(second)
    assert to_inkml(_ink(), "text") == to_inkml(_ink(), "text")


def test_ink_is_drawn_over_the_rules_of_the_paper_each_in_its_colour() -> None:
    layout = replace(sheet(), paper="squared")
    root = ElementTree.fromstring(to_svg(_ink(), layout, 2))
    *_, ruled, ink = root
    look = {name: ruled.attrib[name] for name in ("stroke", "stroke-width")}
    assert look == {"stroke": "#b8c5d6", "stroke-width": "0.75"}
    ends = [float(number) for number in re.findall(r"[\d.]+", ruled.attrib["d"])]
    (expected,) = rules(layout, 2)
    assert np.reshape(ends, (-1, 4)) == pytest.approx(expected, abs=_HALF_A_HUNDREDTH)
    assert (ink.attrib["stroke"], ink.attrib["stroke-width"]) == ("#1a2b3c", "3.0")
    assert len(ink) == len(_ink())


def test_equal_strokes_are_all_drawn() -> None:
    stroke = _ink()[0]
    svg = to_svg([stroke, stroke, stroke.copy()], sheet(), 1)
    assert _paths(svg) == [curve(stroke)] * 3
    assert "id=" not in svg.replace("width=", "")


@pytest.mark.parametrize("text", ['a < b & "c" > d', "two\nlines", "naïve 😀", "]]>"])
def test_drawing_and_ink_file_say_the_text(text: str) -> None:
    root = ElementTree.fromstring(to_svg(_ink(), sheet(), 2, text).encode())
    assert root.attrib["role"] == "img"
    assert root.attrib["viewBox"] == f"0 0 400 {sheet().height_px(2)}"
    assert root.findtext(f"{_SVG}title") == text
    assert ElementTree.fromstring(to_inkml([], text)).findtext(f"{_INKML}annotation") == text


@pytest.mark.parametrize("character", ["\0", "\x1b", "\ufffe", "\udc80"])
def test_characters_that_xml_has_not_are_replaced(character: str) -> None:
    root = ElementTree.fromstring(to_svg([], sheet(), 1, f"a{character}b").encode())
    assert root.findtext(f"{_SVG}title") == "a\ufffdb"
    ink = ElementTree.fromstring(to_inkml([], f"a{character}b").encode())
    assert ink.findtext(f"{_INKML}annotation") == "a\ufffdb"


def test_the_image_is_dark_exactly_where_the_ink_is() -> None:
    ink = [np.array([[50.0, 40.0], [200.0, 60.0], [350.0, 30.0]])]
    image = _image(to_svg(ink, sheet(), 2))
    assert image.shape == (sheet().height_px(2), 400)
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
    image = _image(to_svg([np.array([[100.5, 50.5]])], sheet(), 2))
    assert image[50, 100] < 60
    rows, columns = np.nonzero(image < 128)
    assert [int(np.ptp(rows)), int(np.ptp(columns))] == [2, 2]


@pytest.mark.parametrize("lines", [0, 1, 3])
def test_no_ink_is_a_white_page(lines: int) -> None:
    svg = to_svg([], sheet(), lines, "")
    assert _paths(svg) == []
    image = _image(svg)
    assert image.shape == (sheet().height_px(lines), 400)
    assert image.min() == 255
    assert to_png(svg).startswith(b"\x89PNG\r\n\x1a\n")


def _waits_of_others(work: Callable[[], object]) -> list[float]:
    """Seconds between the turns of a thread beside some work."""
    moments_s, done = [time.perf_counter()], threading.Event()

    def others() -> None:
        while not done.wait(0.002):
            moments_s.append(time.perf_counter())

    beside = threading.Thread(target=others)
    beside.start()
    try:
        work()
    finally:
        done.set()
        beside.join()
    return [after - before for before, after in pairwise(moments_s)]


def test_others_go_on_while_a_large_image_is_drawn() -> None:
    """The library that draws holds the interpreter, for as long as it takes."""
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="4000" height="3000"/>'
    waits_s = _waits_of_others(lambda: to_png(svg))
    assert max(waits_s) < sum(waits_s) / 2


def test_a_process_that_draws_is_nicer_than_the_service() -> None:
    script = "from service.ink import png; png._draw(None); png.os.write(2, b'%d' % png.os.nice(0))"
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    run = subprocess.run([sys.executable, "-c", script], input=svg, check=True, capture_output=True)
    assert int(run.stderr) > os.nice(0)


def test_others_go_on_while_a_large_page_is_drawn() -> None:
    """Whoever lets go of the interpreter often, and shortly, is never asked for it."""
    random = np.random.default_rng(0)
    page = [random.normal(0, 0.5, (20, 2)).cumsum(axis=0) + 100 for _ in range(2000)]
    for stroke in page:
        stroke[5] = stroke[4]  # the pen rests

    def in_python_alone() -> None:
        began_s = time.thread_time()
        while time.thread_time() - began_s < 0.2:
            pass

    def ratio() -> float:
        drawn = _waits_of_others(lambda: to_svg(page, sheet(thinning=0.9), 1))
        return mean(drawn) / mean(_waits_of_others(in_python_alone))

    # 8 ms for 8, and it was 30 on an idle machine; on a busy one whoever draws is put aside anyway.
    gc.disable()  # a collection in a process that has run other tests holds everybody up
    try:
        assert any(ratio() < 2 for _ in range(5))
    finally:
        gc.enable()


def test_what_cannot_be_drawn_is_an_error_that_says_so() -> None:
    with pytest.raises(RuntimeError, match="root node"):
        to_png("<svg")


def test_what_stands_beside_the_module_is_no_module_of_the_process_that_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Path(shutil.copy(png.__file__, tmp_path))
    (tmp_path / "resvg_py.py").write_text("raise SystemExit('this one is of the folder')")
    monkeypatch.setattr(png, "__file__", str(beside))
    assert to_png('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')


def test_a_picture_that_takes_too_long_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.ink.png._LONGEST_S", 0.001)
    with pytest.raises(DeadlineExceeded, match=r"over 0\.001 s"):
        to_png('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')


def test_an_ink_file_gives_the_coordinates_back() -> None:
    ink = _ink()
    root = ElementTree.fromstring(to_inkml(ink, "text").encode())
    channels = [channel.attrib["name"] for channel in root.iter(f"{_INKML}channel")]
    assert channels == ["X", "Y"]
    assert {channel.attrib["type"] for channel in root.iter(f"{_INKML}channel")} == {"decimal"}
    assert [(a.attrib["type"], a.text) for a in root.iter(f"{_INKML}annotation")] == [
        ("truth", "text")
    ]
    (context,) = root.iter(f"{_INKML}context")
    (name,) = (value for key, value in context.attrib.items() if key.endswith("namespace}id"))
    assert {t.attrib["contextRef"] for t in root.iter(f"{_INKML}trace")} == {f"#{name}"}
    traces = [str(trace.text) for trace in root.findall(f"{_INKML}trace")]
    for stroke, trace in zip(ink, traces, strict=True):
        points = np.array([point.split() for point in trace.split(",")], float)
        assert points.shape == stroke.shape
        assert np.abs(points - stroke).max() <= _HALF_A_HUNDREDTH
