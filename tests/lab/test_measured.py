"""The page of results: what its figures are told as where there are none."""

from typing import Any

from lab.measured import proof, speed


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


def test_losses_of_twins_are_told_with_the_bytes_that_are_in_whole_segments() -> None:
    """Of 1,000 bytes: 31 of each of 32 rows in segments of 10, 30 of them in whole ones."""
    recipe = {"model": {"units": 8}, "batch": {"rows": 32, "steps": 10}}
    content = {"command": "c", "recipe": recipe, "validation_bytes": 1000}
    told = " ".join(proof.norms(content | {"twins": [], "perturbations": []}).split())
    assert "of the 1,000 bytes there are those in whole segments: 960;" in told
    assert "1,000 in batches of 4, 960 where they are 3 times as long" in told
    longer = content | {"validation_bytes": 1900, "twins": [], "perturbations": []}
    told = " ".join(proof.norms(longer).split())
    assert "whole segments: 1,600; 1,880 in batches of 4, 960 where" in told
