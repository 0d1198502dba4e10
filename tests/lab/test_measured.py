"""The page of results: what its figures are told as where there are none."""

from typing import Any

from lab.measured import speed


def _goal(name: str, met: bool | None) -> dict[str, Any]:
    value = None if met is None else 2.0
    return {"name": name, "compared": "a and b", "met": met, "value": value, "bound": 1.0,
            "unit": "ms", "direction": "at most"}  # fmt: skip


def test_a_goal_that_was_not_measured_is_neither_reached_nor_missed() -> None:
    goals = [_goal("first", True), _goal("second", False), _goal("third", None)]
    told = speed.goals(
        [{"command": "make bench-all", "goals": goals}], [{"command": "make bench", "goals": []}]
    )
    assert "**1 of 3** were missed" in " ".join(told.split())
    assert "| third | a and b | - | - |" in told
