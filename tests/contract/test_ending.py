"""A text is over when the pen goes on to the right of all its ink, and not at a dot or a bar."""

import numpy as np
import pytest

from contract.ending import PAST_INK_UNITS, Ending

# A stem, up; its dot, up; and off to the next word.
_DOTTED = np.array([[5, 0, 0], [-2, -3, 1], [1.5, 5, 1], [4.1, -5, 0]], np.float32)
_PAST = np.array([False, False, True, True])


def _all(past: np.ndarray, drawn: np.ndarray, portions: int) -> int | None:
    """The step of the end, the steps taken so many at a time."""
    rule = Ending()
    for start in range(0, len(drawn), portions):
        part = slice(start, start + portions)
        found = rule.first(past[part], drawn[part])
        if found is not None:
            return start + found
        rule.follow(drawn[part])
    return None


@pytest.mark.parametrize("portions", [1, 2, 3, 4])
def test_a_delayed_stroke_is_ink_and_the_move_past_all_ink_is_the_end(portions: int) -> None:
    assert _all(_PAST, _DOTTED, portions) == 3
    assert _all(_PAST & False, _DOTTED, portions) is None


@pytest.mark.parametrize(("dx", "over"), [(2.4, False), (2.5, False), (2.6, True)])
def test_the_end_is_so_far_right_of_the_ink_not_of_the_pen(dx: float, over: bool) -> None:
    # The pen stands half a unit left of the right end of the ink.
    ink = np.array([[5, 0, 0], [-0.5, 1, 1]], np.float32)
    rule = Ending()
    rule.follow(ink)
    assert rule.reach == pytest.approx(0.5)
    assert PAST_INK_UNITS + 0.5 == 2.5
    found = rule.first(np.array([True]), np.array([[dx, 0, 0]], np.float32))
    assert found == (0 if over else None)


def test_a_line_that_was_left_goes_on_with_how_far_its_ink_reached() -> None:
    whole, rest = Ending(), Ending()
    whole.follow(_DOTTED[:2])
    rest = Ending(whole.reach)
    for rule in (whole, rest):
        assert rule.first(_PAST[2:], _DOTTED[2:]) == 1
    assert Ending(9.0).first(_PAST, _DOTTED) is None


def test_of_many_steps_past_all_ink_the_first_is_the_end() -> None:
    assert Ending().first(np.ones(4, bool), np.full((4, 3), 3.0)) == 0
    assert Ending(1.5).first(np.ones(4, bool), np.full((4, 3), 3.0)) == 1


def test_ink_in_portions_is_the_ink_at_once() -> None:
    ink = np.random.default_rng(3).normal(0.3, 2.0, (200, 3)).astype(np.float32)
    parts, reached = Ending(), set[float]()
    for stop in range(7, 211, 7):
        whole = Ending()
        whole.follow(ink[:stop])
        parts.follow(ink[stop - 7 : stop])
        assert parts.reach == whole.reach >= 0
        reached.add(whole.reach)
    assert len(reached) > 20
