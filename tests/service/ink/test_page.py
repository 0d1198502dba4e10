"""What a page adds to the ink of its lines, and what it asks of them."""

import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.http.exchange import Exchange
from service.ink import page
from service.ink.best import Best, best_of
from service.ink.line import InkLine, InkPiece
from tests.service.writing import InkService

pytestmark = pytest.mark.in_process


def _marked(monkeypatch: pytest.MonkeyPatch, *mark: tuple[float, float]) -> None:
    """Have every line end with a mark that is a stroke of these points."""
    drawn = np.array([[x, y, number == len(mark)] for number, (x, y) in enumerate(mark, 1)])
    monkeypatch.setattr(page.LineMarks, "drawn", lambda marks: drawn.copy())


def test_a_mark_stands_on_the_page(ink: InkService, monkeypatch: pytest.MonkeyPatch) -> None:
    _marked(monkeypatch, (150.0, 20.0), (5000.0, 30.0))
    ((*_, mark),) = ink.strokes(text="a", seed=1, width=160)
    assert mark == [[150.0, 20.0], [160.0, 30.0]]


def test_the_pen_is_lifted_before_the_mark_of_a_line_that_was_cut_off(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    _marked(monkeypatch, (10.0, 20.0), (30.0, 20.0))
    lost = ink.token(kappa=-1000.0)
    down = 0
    for seed in range(8):
        (line,) = ink.lines(text="a", seed=seed, state=lost)
        assert line["finish_reason"] == "length"
        *_, before, mark = line["strokes"]
        assert mark == [[10.0, 20.0], [30.0, 20.0]]
        down += before[-1] == before[-2]  # lifted where it was
    assert down


def test_the_pen_is_lifted_before_the_mark_of_a_line_whose_end_came_by_itself(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def pieces(page: page.Page, number: int) -> AsyncGenerator[InkPiece]:
        down = np.array([[1, 0, 0], [1, 0, 0]], np.float32)
        yield InkPiece(offsets=down, characters=np.zeros(2, np.int64))
        yield InkPiece("length")

    _marked(monkeypatch, (10.0, 20.0), (30.0, 20.0))
    monkeypatch.setattr(page.Page, "_pieces", pieces)
    (line,) = ink.lines(text="a", seed=1)
    ((*_, here, lifted), mark) = line["strokes"]
    assert (here, mark) == (lifted, [[10.0, 20.0], [30.0, 20.0]])


def test_marks_after_a_last_word_that_has_no_ink_are_of_the_letter_before(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the window may be past the text where it leaves the word before."""

    async def emptied(*given: Any) -> Best:
        best, until = await best_of(*given), given[-1]
        return best if until is not None else replace(best, piece=InkPiece("stop"))

    _marked(monkeypatch, (10.0, 20.0), (30.0, 20.0))
    monkeypatch.setattr(page, "best_of", emptied)
    events = ink.events(text="an even keel", seed=1, best_of=2, best_by="word")
    *_, before, mark = [event for event in events if "points" in event]
    assert mark["points"][-2:] == [[10.0, 20.0, 0.0], [30.0, 20.0, 1.0]]
    assert mark["character"] == before["character"] > 0


@pytest.mark.parametrize("asked", [False, True])
def test_the_state_after_the_last_line_is_looked_for_where_it_was_asked_for(
    ink: InkService, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    wanted: list[bool] = []

    def noted(*given: Any, wants_state: bool, **more: Any) -> InkLine:
        wanted.append(wants_state)
        return InkLine(*given, wants_state=wants_state, **more)

    monkeypatch.setattr(page, "InkLine", noted)
    ink.write(text="a\nb\n\n", seed=1, style="made-up", return_state=asked)
    assert wanted == [True, asked]


@pytest.mark.parametrize("more", [{}, {"best_of": 2}, {"best_of": 2, "best_by": "word"}], ids=str)
def test_once_a_line_is_written_the_others_are(
    ink: InkService, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    """Where others wait, a page is refused whole or not at all."""
    engine, let_in = ink.app.state.models["scrawl"].engine, list[bool]()
    submit = engine.submit

    def noted(jobs: Any, *, admitted: bool = False) -> None:
        let_in.append(admitted)
        submit(jobs, admitted=admitted)

    monkeypatch.setattr(engine, "submit", noted)
    ink.write(text="a\n\nb\nc", seed=1, style="made-up", **more)
    assert let_in == [False, True, True]


@pytest.mark.parametrize(
    ("body", "hurried"),
    [({"stream": True}, True), ({"stream": True, "best_of": 2}, False), ({}, False)],
    ids=str,
)
def test_only_ink_that_somebody_sees_come_is_in_a_hurry(
    ink: InkService, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], hurried: bool
) -> None:
    told: list[bool] = []

    def noted(*, streamed: bool) -> Exchange[Any]:
        told.append(streamed)
        return Exchange(streamed=streamed)

    monkeypatch.setattr(page, "Exchange", noted)
    assert ink.post(text="a", seed=1, **body).status_code == 200
    assert told == [hurried]


def test_a_page_tells_when_it_was_made_and_has_a_name_and_a_seed_of_its_own(
    ink: InkService,
) -> None:
    pages = [ink.post(text="a", format="json").json() for _ in range(8)]
    assert all(abs(page["created"] - time.time()) < 60 for page in pages)
    assert len({page["id"] for page in pages}) == len({page["seed"] for page in pages}) == 8
    assert max(page["seed"] for page in pages) < 2**53  # as JavaScript has whole numbers
