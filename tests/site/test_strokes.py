"""A caller's strokes prepared on the site: as in the service."""

import base64
import re
from typing import Any

import numpy as np

from service.errors import InvalidRequest
from service.ink.hands import offsets_of
from tests.site.conftest import Ask

_CASES = 200
_TEXTS = ["even keel", "a", "to be", "Steady as she goes"]


def _case(random: np.random.Generator) -> dict[str, Any]:
    """Waves along a line that climbs, at any size, rate and place, with pauses and dots."""
    size, slope = 10 ** random.uniform(0, 2), random.uniform(-1.2, 1.2)
    strokes = []
    for number in range(int(random.integers(1, 7))):
        t = np.arange(random.choice([1, 2, 3, 30, 90])) * random.uniform(0.05, 0.6)
        if random.random() < 0.3:
            t = np.repeat(t, 3)
        x = number * 5 + 0.4 * t
        y = np.sin(2 * t) + 0.3 * np.cos(5 * t + number) + slope * x
        strokes.append((size * np.stack([x, y], axis=1) + random.uniform(0, 300, 2)).tolist())
    return {"strokes": strokes, "text": random.choice(_TEXTS)}


def _expected(case: dict[str, Any]) -> np.ndarray | str:
    """The offsets of the service, or why it refuses."""
    try:
        return offsets_of(case["strokes"], case["text"])
    except InvalidRequest as error:
        return error.message


def _without_figures(message: str) -> str:
    """Halves are rounded in two ways."""
    return re.sub(r"\d+\.\d", "", message)


def test_offsets_are_those_of_the_service(ask: Ask) -> None:
    random = np.random.default_rng(12)
    cases = [_case(random) for _ in range(_CASES)]
    refused = 0
    for case, answer in zip(cases, ask("strokes", cases), strict=True):
        expected = _expected(case)
        if isinstance(expected, str):
            refused += 1
            assert _without_figures(answer["refused"]) == _without_figures(expected)
            continue
        offsets = np.frombuffer(base64.b64decode(answer["offsets"]), np.float32).reshape(-1, 3)
        assert offsets.shape == expected.shape
        np.testing.assert_allclose(offsets, expected, atol=1e-5)
    assert 0 < refused < _CASES / 4


def test_a_line_that_is_no_higher_is_measured_by_its_width(ask: Ask) -> None:
    flat = [[[float(x), 50.0] for x in range(0, 90, 2)]]
    (answer,) = ask("strokes", [{"strokes": flat, "text": "even keel"}])
    offsets = np.frombuffer(base64.b64decode(answer["offsets"]), np.float32).reshape(-1, 3)
    np.testing.assert_allclose(offsets, offsets_of(flat, "even keel"), atol=1e-5)


def test_no_ink_is_refused(ask: Ask) -> None:
    nothing = [{"strokes": strokes, "text": "a"} for strokes in ([[]], [[[1, 1]]], [[[1, 1]] * 9])]
    expected = {"refused": "style.strokes has no line in it"}
    assert ask("strokes", nothing) == [expected] * 3


def test_a_stroke_without_a_point_is_left_out(ask: Ask) -> None:
    case = _case(np.random.default_rng(3)) | {"text": "a"}
    with_none = case | {"strokes": [[], *case["strokes"], []]}
    one, other = ask("strokes", [case, with_none])
    assert "offsets" in one
    assert one == other
