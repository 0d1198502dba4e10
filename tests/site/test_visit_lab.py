"""The digit of the Lab tab visited without a browser: what is drawn, step by step, and told."""

import base64
from typing import Any

import pytest

from lab import plots
from tests.site.visiting import Json, Visitor, serving

_PATH = f"/static/lab/{plots.DECODER}"
_DRAW, _TOLD = ["press", "#lab-draw"], ["look", "#lab-drawn"]
_BUSY, _PAINTED = ["look", "#lab-drawn", "ariaBusy"], ["look", "#lab-canvas", "painted"]
_WIDE = ["sets", "#lab-canvas", "width", 224]
_STEP = ["passes", 250]


@pytest.fixture(scope="module")
def decoder() -> Json:
    """The file of what draws, as it is answered."""
    file = plots.SHOWN / plots.DECODER
    if not file.exists():
        pytest.skip("the laboratory has not trained what draws")
    return {"base64": base64.b64encode(file.read_bytes()).decode()}


def _visit(visit: Visitor, *steps: list[Any], decoder: Any, **how: Any) -> list[Any]:
    answers = serving(**{_PATH: decoder})
    return visit(_WIDE, *steps, answers=answers, address="#lab", **how)


def _step(seed: int, step: int) -> str:
    return f"Seed {seed}, step {step} of 10, computed here in 0 ms"


def test_a_digit_is_drawn_step_by_step_and_the_last_is_read_out(
    visit: Visitor, decoder: Json
) -> None:
    rest = [*7 * [_STEP], _TOLD, _BUSY, _STEP, _TOLD, _BUSY, ["passes", 9999], _TOLD]
    found = _visit(visit, _DRAW, _TOLD, _BUSY, _STEP, _TOLD, *rest, _PAINTED, decoder=decoder)
    assert found[:5] == [_step(1, 1), "true", _step(1, 2), _step(1, 9), "true"]
    assert found[5:8] == [_step(1, 10), "false", _step(1, 10)]
    *pixels, (red, *frame) = found[8][-785:]
    assert len(found[8]) == 10 * 785
    assert [at for _, *at in pixels] == [[x * 8, y * 8, 8, 8] for y in range(28) for x in range(28)]
    greys = [int(colour.removeprefix("rgb(").split()[0]) for colour, *_ in pixels]
    assert [colour for colour, *_ in pixels] == [f"rgb({grey} {grey} {grey})" for grey in greys]
    assert min(greys) < 50  # dark
    assert sum(grey > 200 for grey in greys) > 400  # on white
    assert (red, frame[2]) == ("#c81e1e", frame[3])
    assert len({tuple(at) for colour, *at in found[8] if colour == red}) == 10  # where each wrote


def test_another_digit_is_drawn_in_the_place_of_one_that_is_not_done(
    visit: Visitor, decoder: Json
) -> None:
    rest = [["passes", 9999], _TOLD, ["look", "#lab-canvas", "painted.length"], ["asked", _PATH]]
    found = _visit(visit, _DRAW, _STEP, _DRAW, _TOLD, _STEP, _TOLD, *rest, decoder=decoder)
    assert found[:3] == [_step(2, 1), _step(2, 2), _step(2, 10)]
    assert found[3] == (2 + 10) * 785  # of the one that was left nothing more
    assert len(found[4]) == 1  # what draws is fetched once


def test_who_wants_no_motion_has_the_digit_at_once(visit: Visitor, decoder: Json) -> None:
    assert _visit(visit, _DRAW, *9 * [["passes", 1]], _TOLD, still=True, decoder=decoder) == [
        _step(1, 10)
    ]


def test_what_draws_is_asked_for_again_where_it_was_lost(visit: Visitor, decoder: Json) -> None:
    lost = [{"status": 503}, {"lost": True}, decoder]
    found = _visit(visit, _DRAW, _TOLD, _DRAW, _TOLD, _DRAW, _TOLD, decoder=lost)
    assert found[0] == "What draws could not be fetched. The service answers 503."
    assert found[1].startswith("What draws could not be fetched. ")
    assert found[2] == _step(1, 1)
