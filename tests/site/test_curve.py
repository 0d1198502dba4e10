"""Strokes on the page: curves and widths as the service draws them."""

import re
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
    """Fast and slow, of one point, of two and of more, and with a pen that stands still."""
    random = np.random.default_rng(21)
    lengths = (1, 2, 3, 9, 40)
    made = [random.normal(0, 9, (n, 2)).cumsum(0).round(2).tolist() for n in lengths]
    return [*made, [p for p in made[3] for _ in range(3)], [made[0][0]] * 4]


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
