"""The page's modules that make elements: letters by chance, sheets, where a pen is expected."""

import math
from typing import Any

import pytest

from tests.site.conftest import Ask


def _event(text: str, *bytes_: tuple[int, float]) -> dict[str, Any]:
    offsets, chances = zip(*bytes_, strict=True)
    logs = [math.log(chance) for chance in chances]
    return {"text": text, "logprobs": {"text_offset": offsets, "token_logprobs": logs}}


def test_letters_are_tinted_by_their_chance_and_counted_in_bytes(ask: Ask) -> None:
    events = [
        _event("a\u00e9", (0, 0.5), (1, 0.4), (1, 0.5)),
        {"text": "", "logprobs": None},
        _event("\n", (2, 0.0499)),
        _event(" \U0001d11e", (3, 0.01), (4, 0.009)),
        {"text": "x", "logprobs": None},
        _event("y", (6, 0.05)),
    ]
    before = [_event("gone\nby", (0, 0.1))]
    (found,) = ask("tinted", [{"before": before, "events": events}])
    assert found["lines"] == [
        [["a", "likely0", "a: 50 %"], ["\u00e9", "likely1", "\u00e9: 20 %"],
         ["\n", "likely3", "line break: 5 %"]],
        [[" ", "likely3", "space: 1 %"], ["\U0001d11e", "likely4", "\U0001d11e: 0.9 %"],
         ["x", "", None], ["y", "likely2", "y: 5 %"]],
    ]  # fmt: skip
    assert (found["text"], found["bytes"]) == ("a\u00e9\n \U0001d11exy", 7)
    chances = (0.5, 0.4, 0.5, 0.0499, 0.01, 0.009, 0.05)
    assert found["surprise"] == pytest.approx(-sum(map(math.log2, chances)) / 7)


def test_nothing_that_was_written_is_not_surprising(ask: Ask) -> None:
    (found,) = ask("tinted", [{"before": [], "events": []}])
    assert (found["bytes"], found["surprise"]) == (0, None)


def test_sheets_of_a_visit_are_the_last_twelve_newest_first(ask: Ask) -> None:
    cases = [{"count": count, "lines": ["a" * 40, "b" * 40], "shows": 1} for count in (3, 14)]
    few, many = (ask("kept", [case])[0] for case in cases)
    name = f"{'a' * 40} {'b' * 19}"
    assert few["names"] == [f"{name}, seed {seed}" for seed in (2, 1, 0)]
    assert (few["shown"], few["hidden"]) == ([1], [True, False, False])
    assert few["current"] == [True, False, False]
    assert few["at"] == 2
    assert many["names"] == [f"{name}, seed {seed}" for seed in range(13, 1, -1)]
    assert many["at"] == 11  # the keyboard was at one that is gone
    (left,) = ask("kept", [cases[1] | {"elsewhere": True}])
    assert left["at"] == -1


def test_gaussians_are_shown_as_their_covariance_lies(ask: Ask) -> None:
    def one(sigma: list[float], rho: float, weight: float = 0.5) -> dict[str, Any]:
        return {"weight": weight, "mean": [7, 8], "sigma": sigma, "rho": rho}

    mixture = [one([3, 1], 0), one([1, 3], 0, 0.9), one([2, 2], 0.5, 0.02), one([2, 2], 0, 0.019)]
    shown, many = ask("shaded", [{"mixture": mixture}, {"mixture": 20 * mixture[:1]}])
    assert len(many) == 8
    told = [[float(e[name]) for name in ("rx", "ry", "opacity")] for e in shown]
    assert told[:2] == [[6, 2, 0.65], [6, 2, 1]]
    assert told[2] == pytest.approx([2 * 6**0.5, 2 * 2**0.5, 0.17])
    assert [e["transform"].partition(" r")[2] for e in shown] == [
        "otate(0)",
        "otate(90)",
        "otate(45)",
    ]


def test_points_that_are_far_enough_are_told_in_their_order(ask: Ask) -> None:
    points = [[0, 0, 0], [3, 0, 0], [4, 3, 0], [5, 3, 1], [5, 4, 0], [9, 9, 0]]
    (found,) = ask("expected", [{"points": points, "opens": 3, "answers": True, "spacing": 5}])
    sent = [{"point": [*map(int, point)]} for point in points if point != [3, 0, 0]]
    assert found["sent"] == [{"model": "any"}, *sent]
    assert found["shown"] == [[[i], 0.5] for i in range(len(points))]


@pytest.mark.parametrize(
    ("count", "answers", "closed"), [(401, False, False), (402, False, True), (402, True, False)]
)
def test_a_session_that_is_far_behind_is_left(
    ask: Ask, count: int, answers: bool, closed: bool
) -> None:
    points = [[9 * i, 0, 0] for i in range(count)]
    (found,) = ask("expected", [{"points": points, "opens": 0, "answers": answers, "spacing": 5}])
    assert found["closed"] == closed
    assert (found["shown"][-1:] == [[[], None]]) == closed
