"""A model on a device: when it is opened, stopped, and asked to prove itself."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.site.conftest import Ask


def test_a_model_that_could_not_be_had_is_asked_for_again_and_a_job_stops_in_its_run(
    ask: Ask,
) -> None:
    (found,) = ask("tried", [{}])
    assert found["opened"] == 2
    assert (found["runs"], found["end"]) == (1, "AbortError")
    # With another seed its randomness begins anew.
    assert found["moments"] == [{"seed": 3, "drawn": 40}, {"seed": 4, "drawn": 0}]
    assert found["holds"] == [True, False]


@pytest.mark.parametrize(("loads", "replayed"), [(True, 1), (False, 2)])
def test_who_checks_a_model_has_it_replayed(ask: Ask, loads: bool, replayed: int) -> None:
    (found,) = ask("checked", [{"loads": loads}])
    sample = {"equal": 0, "of": 3, "unit": "bytes", "runtime": "any"}
    assert found == {"ok": True, "replayed": replayed, "sample": sample}


def test_each_letter_is_told_of_as_it_is_written(ask: Ask, artifact: Callable[[str], Path]) -> None:
    manifest = json.loads((artifact("handwriting") / "manifest.json").read_text())
    (told,) = ask("lettered", [{"manifest": manifest, "text": "keel"}])
    assert [event["character"] for event in told] == [0, 1, 2, 3]


def test_marks_come_last_when_the_pen_has_been_lifted_and_end_at_the_edge(
    ask: Ask, artifact: Callable[[str], Path]
) -> None:
    manifest = json.loads((artifact("handwriting") / "manifest.json").read_text())
    (told,) = ask("lettered", [{"manifest": manifest, "text": "n\u00f6", "dx": 500}])
    first, last, marks = told
    (x, y, up), *dots = marks["points"]
    assert marks["character"] == last["character"] == 1
    assert [x, y] == last["points"][-1][:2]
    assert [up for *_, up in (*first["points"], *last["points"])] == [0, 0]
    assert [up, *(up for *_, up in dots)] == [1, 0, 1, 0, 1]
    assert max(x for x, *_ in dots) == 800
