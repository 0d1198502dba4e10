"""A stroke is thinner where the pen was fast, in every drawing, and in nothing else."""

import io
import re
import zlib
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from service.ink.curve import beziers
from service.ink.nib import STEPS, USUAL_SPEED, runs
from service.ink.pen import LinePen, strokes
from service.ink.png import to_png
from service.ink.svg import to_svg
from tests.service.ink.sheets import sheet, some_offsets
from tests.service.writing import InkService

_BODY = {"text": "swift", "seed": 3, "stroke_width": 4}
_WIDTH = re.compile(r'<path d="[^"]*" stroke-width="([\d.]+)"')
_THINNING = 0.8


def _widths(speeds: list[float], thinning: float = _THINNING) -> list[float]:
    """The width of each segment of a stroke along a line, with points so many line heights apart;
    those of `sheet` are 40 px, its strokes 3 px wide."""
    x = np.cumsum([0.0, *speeds]) * 40
    stroke = np.stack([x, np.zeros_like(x)], axis=1)
    return [
        width for width, _, segments in runs(stroke, sheet(thinning=thinning)) for _ in segments
    ]


def test_at_the_usual_speed_half_of_the_thinning_is_seen() -> None:
    assert _widths([USUAL_SPEED] * 5) == pytest.approx([3 * (1 - _THINNING / 2)] * 5)


def test_the_faster_the_thinner_between_rest_and_what_is_asked_for() -> None:
    widths = _widths([0.002, 0.002, 0.02, 0.1, 0.5, 20.0, 20.0])
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(3, abs=3 * _THINNING / STEPS)
    assert widths[-1] == pytest.approx(3 * (1 - _THINNING), abs=3 * _THINNING / STEPS)


def test_half_of_a_speed_is_that_of_its_neighbours() -> None:
    """As no nib widens at once."""
    widths = _widths([0.01, 0.01, 0.21, 0.01, 0.01])
    seen = np.floor(16 * (v := np.array([0.01, 0.06, 0.11, 0.06, 0.01])) / (v + 0.07) + 0.5)
    assert widths == pytest.approx((3 * (1 - _THINNING * seen / 16)).tolist())


def test_parts_of_one_width_are_the_whole_curve_in_order() -> None:
    random = np.random.default_rng(5)
    stroke = random.normal(0, 4, (60, 2)).cumsum(axis=0)
    start, segments = beziers(stroke)
    parts = list(runs(stroke, sheet(thinning=_THINNING)))
    assert len(parts) > 5
    assert np.array_equal(np.concatenate([part for _, _, part in parts]), segments)
    begins = np.stack([begin for _, begin, _ in parts])
    ends = np.stack([start, *(part[-1, 4:] for _, _, part in parts)])
    assert np.array_equal(begins, ends[:-1])
    widths = [width for width, _, _ in parts]
    assert all(a != b for a, b in pairwise(widths))


def test_a_dot_is_as_wide_as_was_asked_for() -> None:
    ((width, _, segments),) = runs(np.zeros((3, 2)), sheet(thinning=_THINNING))
    assert (width, len(segments)) == (3.0, 0)


def test_an_image_has_less_ink_the_more_thinning() -> None:
    ink = strokes(LinePen(sheet(), 0).move(some_offsets(200)))
    drawings = [to_svg(ink, sheet(thinning=share), 1) for share in (0, 0.4, 0.8)]
    images = [Image.open(io.BytesIO(to_png(svg))).convert("L") for svg in drawings]
    light = [np.asarray(image).sum(dtype=int) for image in images]
    assert light == sorted(light)
    assert len(set(light)) == 3


def test_drawings_have_the_widths_and_the_points_do_not_change(pen: InkService) -> None:
    svg = pen.post(**_BODY, thinning=0.8).text
    widths = [float(width) for width in _WIDTH.findall(svg)]
    assert 4 * (1 - 0.8) <= min(widths) < max(widths) <= 4
    assert not _WIDTH.search(pen.post(**_BODY).text)
    pdf = pen.post(**_BODY, thinning=0.8, format="pdf").content
    (packed,) = re.findall(rb"stream\n(.*?)\nendstream", pdf, re.DOTALL)
    told = {float(width) for width in re.findall(rb"([\d.]+) w\n", zlib.decompress(packed))}
    assert {round(width, 2) for width in told} >= set(widths)
    for same in ("json", "inkml", "hpgl"):
        plain, thin = (pen.post(**_BODY, **more, format=same) for more in ({}, {"thinning": 0.8}))
        strip = re.compile(rb'"(id|created)": ?("[^"]*"|\d+)')
        assert strip.sub(b"", thin.content) == strip.sub(b"", plain.content)


def test_a_stream_tells_how_it_is_to_be_drawn(pen: InkService) -> None:
    head, *_ = pen.events(**_BODY, thinning=0.25, color="#123456")
    look = {name: head[name] for name in ("stroke_width", "thinning", "color")}
    assert look == {"stroke_width": 4, "thinning": 0.25, "color": "#123456"}
    assert pen.events(**_BODY)[0]["thinning"] == 0
