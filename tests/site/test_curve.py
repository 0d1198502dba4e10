"""Strokes on the page: curves and widths as the service draws them."""

import re
from itertools import chain
from typing import Any

import numpy as np
import pytest

from service.ink.curve import beziers, path
from service.ink.nib import runs
from tests.service.ink.sheets import sheet
from tests.site.conftest import Ask

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_HOW = {"width": 3.0, "lineHeight": 40.0}


def _strokes() -> list[list[list[float]]]:
    """Fast and slow, of one point, of two and of more, and with a pen that stands still or creeps
    by a hundredth of a px, the least that two points may be apart."""
    random = np.random.default_rng(21)
    lengths = (1, 2, 3, 9, 40)
    made = [random.normal(0, 9, (n, 2)).cumsum(0).round(2).tolist() for n in lengths]
    creeping = [[9.0, 5.0], [10.01, 5.0], [10.02, 5.0], [10.02, 5.01], [14.0, 6.0]]
    return [*made, [p for p in made[3] for _ in range(3)], [made[0][0]] * 4, creeping]


@pytest.mark.parametrize("thinning", [0.0, 0.6])
def test_a_stroke_is_drawn_as_by_the_service(ask: Ask, thinning: float) -> None:
    layout = sheet(thinning=thinning)
    cases: list[dict[str, Any]] = [
        {"stroke": stroke, "thinning": thinning} | _HOW for stroke in _strokes()
    ]
    for case, found in zip(cases, ask("curved", cases), strict=True):
        points = np.array(case["stroke"])
        expected = path(*beziers(points))
        assert re.findall("[MCL]", found["path"]) == re.findall("[MCL]", expected)
        ours, theirs = ([*map(float, _NUMBER.findall(p))] for p in (found["path"], expected))
        assert ours == pytest.approx(theirs, abs=0.011)
        widths = [width for width, _, part in runs(points, layout) for _ in part]
        assert found["widths"] == pytest.approx(widths, abs=0.0051)


@pytest.mark.parametrize("thinning", [0.0, 0.6])
def test_what_is_watched_is_what_the_service_draws(ask: Ask, thinning: float) -> None:
    """In portions of any size; a line ends with a lifted pen, whatever was last written."""
    layout, lines = sheet(thinning=thinning), _strokes()
    points = [[[x, y, i == len(s) - 1] for i, (x, y) in enumerate(s)] for s in lines]
    first, second = ([*chain(*some)] for some in (points[:4], points[4:]))
    cut: list[dict[str, Any]] = [
        {"points": first[i : i + 3], "line": 0, "character": i} for i in range(0, len(first), 3)
    ]
    x, y, _ = first[-1]
    cut[-1]["points"][-1] = [x, y, 0]
    cut[-1]["lift"] = True
    at_once = {"points": [*first, *second], "line": 0, "character": 0}
    writings = [[at_once], [*cut, {"points": second, "line": 1, "character": 7}]]
    case = {"writings": writings, "how": _HOW | {"thinning": thinning}, "frame_ms": 40}
    expected = [
        (path(start, part), width)
        for stroke in lines
        for width, start, part in runs(np.array(stroke), layout)
    ]
    ((whole, parted),) = ask("watched", [case])
    for found in (whole, parted):
        assert len(found["paths"]) == len(expected)
        for (data, width), (theirs, wide) in zip(found["paths"], expected, strict=True):
            ours = [*map(float, _NUMBER.findall(data))]
            assert ours == pytest.approx([*map(float, _NUMBER.findall(theirs))], abs=0.011)
            assert float(width or _HOW["width"]) == pytest.approx(wide, abs=0.0051)
    lines_reached = [line for line, _ in parted["reached"]]
    assert lines_reached == sorted(lines_reached)
    assert parted["reached"][-1] == [1, 7]
    # Sixty points a second, and a little for each stroke.
    drawn_ms = 1000 * len(parted["reached"]) / 60
    assert drawn_ms < parted["took_ms"] < drawn_ms + 100 * len(lines) + 200
