"""Ink read while it is being written, over `/v1/online`."""

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from contract.pieces import Pieces
from service.engine.engine import Engine
from service.engine.given import GivenSteps, run_steps
from service.reader.online import OnlineReader, _portions
from service.reader.schemas import ReaderOpening, ReaderSaid
from tests.service.reader.lines import MODEL, ReaderService, line, points
from tests.service.serving import eventually
from tests.service.writing import Session, online

_INK = line()
_PLACE = {"line_height": 64, "origin": [40, 90]}


@pytest.fixture
def whole(reader: ReaderService) -> dict:
    return reader.read(strokes=_INK, **_PLACE)


def test_point_by_point_it_ends_with_what_the_whole_line_says(
    reader: ReaderService, whole: dict
) -> None:
    with online(reader, model=MODEL, **_PLACE) as session:
        answers = [session.ask(point=point) for point in points(_INK)]
    assert answers[-1]["text"] == whole["text"]
    assert answers[-1]["step"] == whole["usage"]["pieces"] + 1  # and the rest before them
    settled = [c for a in answers for c in a["characters"] if c["settled"]]
    ahead = [c for c in answers[-1]["characters"] if not c["settled"]]
    assert "".join(c["character"] for c in (*settled, *ahead)) == whole["text"]


def test_what_is_settled_stays(reader: ReaderService) -> None:
    with online(reader, model=MODEL, **_PLACE) as session:
        settled = ""
        for point in points(_INK):
            answer = session.ask(point=point)
            assert answer["text"].startswith(settled)
            settled += "".join(c["character"] for c in answer["characters"] if c["settled"])


def test_all_at_once_is_point_by_point(reader: ReaderService, whole: dict) -> None:
    with online(reader, model=MODEL, **_PLACE) as session:
        assert session.ask(points=points(_INK))["text"] == whole["text"]


@pytest.mark.parametrize("place", [_PLACE, {}], ids=["on a line", "anywhere"])
@pytest.mark.parametrize("cut_at", [9, 40, 41])
def test_a_session_goes_on_in_another(reader: ReaderService, cut_at: int, place: dict) -> None:
    """In the middle of a stroke too."""
    every = points(_INK)
    with online(reader, model=MODEL, **place) as session:
        first = session.ask(points=every[:cut_at])
        token = session.ask(state=True)["state"]
        expected = session.ask(points=every[cut_at:])
    with online(reader, model=MODEL, state=token) as session:
        answer = session.ask(points=every[cut_at:])
    assert answer["characters"] == expected["characters"]
    assert answer["step"] == expected["step"]
    settled = [c for c in first["characters"] if c["settled"]]
    read = "".join(c["character"] for c in (*settled, *answer["characters"]))
    assert read == expected["text"]


def test_ink_that_has_been_read_is_not_refused_the_look_ahead(
    reader: ReaderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But before anything has been read of a message it may be."""
    asked: list[bool] = []

    async def noted(engine: Engine, jobs: list[GivenSteps], *, admitted: bool) -> None:
        asked.append(admitted)
        await run_steps(engine, jobs, admitted=admitted)

    monkeypatch.setattr("service.online.run_steps", noted)
    monkeypatch.setattr(Engine, "run_now", lambda engine, job: False)
    with online(reader, model=MODEL, **_PLACE) as session:
        session.ask(points=points(_INK))
        x, y, _ = points(_INK)[-1]
        session.ask(point=[x, y, 0])  # too little for a piece
    assert asked == [False, True, False]


def test_a_message_that_fails_leaves_the_session_where_it_stood(reader: ReaderService) -> None:
    """Nothing of its points has been traced either."""
    every = points(_INK)
    with online(reader, model=MODEL, **_PLACE) as session:
        session.ask(points=every[:40])
        expected = session.ask(points=every[40:])
    with online(reader, model=MODEL, **_PLACE) as session:
        session.ask(points=every[:40])
        reader.app.state.models[MODEL].engine._slots.runner.run = None  # not callable: a run raises
        failed = session.ask(points=every[40:])
        assert failed.keys() == {"error", "state"}
    assert eventually(lambda: reader.app.state.models[MODEL].engine.ready)
    with online(reader, model=MODEL, state=failed["state"]) as session:
        assert session.ask(points=every[40:])["characters"] == expected["characters"]


def test_a_line_is_64_px_high_and_a_message_has_4096_points_at_most() -> None:
    assert ReaderOpening.model_validate({"model": MODEL}).line_height == 64
    assert ReaderSaid.model_validate({"points": [[0, 0, 0]] * 4096}).points
    with pytest.raises(ValidationError, match="at most 4096"):
        ReaderSaid.model_validate({"points": [[0, 0, 0]] * 4097})


def test_without_an_origin_the_line_begins_where_the_pen_does(reader: ReaderService) -> None:
    moved = [[x + 300, y + 80, up] for x, y, up in points(_INK)]
    texts = []
    for ink in (points(_INK), moved):
        with online(reader, model=MODEL) as session:
            texts.append(session.ask(points=ink)["text"])
    assert texts[0] == texts[1] != ""


def test_without_an_origin_it_begins_where_most_people_begin_a_line(reader: ReaderService) -> None:
    """Two and a half units over a line of 14."""
    x, y, _ = points(_INK)[0]
    begun = []
    for place in ({}, {"origin": [x, y + 2.5 * 64 / 14]}):
        with online(reader, model=MODEL, line_height=64, **place) as session:
            begun.append(session.ask(points=points(_INK)))
    assert begun[0] == begun[1]


def test_a_pen_is_up_wherever_a_tablet_does_not_say_0(reader: ReaderService) -> None:
    told = []
    for share in (1.0, 0.25):
        with online(reader, model=MODEL, **_PLACE) as session:
            told.append(session.ask(points=[[x, y, up * share] for x, y, up in points(_INK)]))
    assert told[0] == told[1]


@pytest.mark.in_process
def test_of_a_session_without_end_the_last_thousand_characters_are_told(
    reader: ReaderService,
) -> None:
    model, portal = reader.app.state.models[MODEL], reader.client.portal
    assert portal is not None
    line = OnlineReader(model, model.on_line(64, None))
    line._text = before = "".join(chr(97 + i % 26) for i in range(1000))
    answer = portal.call(line.answer, {"points": points(_INK)})
    settled, ahead = (
        "".join(c["character"] for c in answer["characters"] if c["settled"] is now)
        for now in (True, False)
    )
    assert settled
    assert ahead
    assert answer["text"] == (before + settled + ahead)[-1000:]


@pytest.mark.parametrize("many", [2, 200])
def test_ink_far_too_large_is_told_of_the_points_it_came_by(
    reader: ReaderService, many: int
) -> None:
    with online(reader, model=MODEL) as session:
        error = session.ask(points=[[1e6 * (i % 2), 0, 0] for i in range(many)])["error"]
    assert (error["param"], error["message"][:11]) == ("points", "the ink is ")
    with online(reader, model=MODEL) as session:
        session.ask(point=[0, 0, 0])
        assert session.ask(point=[1e6, 0, 0])["error"]["param"] == "point"


@pytest.mark.parametrize("last_up", [0, 1])
def test_a_stroke_that_is_not_done_counts_for_how_long_the_ink_of_a_message_is(
    reader: ReaderService, last_up: int
) -> None:
    """Two strokes of 3,000 pieces, of 4 units each; a line of 64 px has 14 units."""
    px = 3000 * 4 * 64 / 14
    ink = [[0, 0, 0], [px, 0, 1], [0, 9, 0], [px, 9, last_up]]
    with online(reader, model=MODEL) as session:
        error = session.ask(points=ink)["error"]
    assert error["message"] == "the ink is 6000 pieces long, for its size; at most 4096"


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"write": 3},
        {"point": [1, 2]},
        {"points": []},
        {"points": [[0, 10 * (i % 2 * 1000), i % 2] for i in range(4096)]},
        {"point": [1, 2, 0], "points": [[1, 2, 0]]},
    ],
)
def test_what_is_no_ink_is_refused(reader: ReaderService, message: dict) -> None:
    with online(reader, model=MODEL) as session:
        assert session.ask(**message)["error"]["type"] == "invalid_request_error"
        assert session.closed() == 1008


def test_strokes_of_a_message_leave_the_event_loop_to_others_in_between(
    reader: ReaderService,
) -> None:
    """In one go, in a thread as well, 4,096 dots kept everybody waiting for half a second."""
    model = reader.app.state.models[MODEL]
    dots = [[i % 70.0, i % 5 * 9.0, 1] for i in range(2000)]

    async def traced() -> tuple[Pieces, int]:
        turns, done = 0, False

        async def others() -> None:
            nonlocal turns
            while not done:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        line = OnlineReader(model, model.on_line(64.0, [0.0, 64.0]))
        pieces = await line.trace(dots)
        done = True
        await beside
        return pieces, turns

    pieces, turns = asyncio.run(traced())
    assert turns > len(dots) / 20
    one_by_one = OnlineReader(model, model.on_line(64.0, [0.0, 64.0]))
    assert (pieces == np.concatenate([one_by_one._follow([dot]) for dot in dots])).all()


@pytest.mark.parametrize(("points", "aside"), [(512, False), (513, True)])
def test_a_long_stroke_is_cut_in_a_thread_and_a_short_one_is_not(
    reader: ReaderService, points: int, aside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    follow = OnlineReader._follow

    def noted(line: OnlineReader, some: Any) -> Pieces:
        threads.append(threading.current_thread())
        return follow(line, some)

    monkeypatch.setattr(OnlineReader, "_follow", noted)
    model = reader.app.state.models[MODEL]
    line = OnlineReader(model, model.on_line(64.0, [0.0, 64.0]))
    asyncio.run(line.trace([[i, i % 7, 0] for i in range(points)]))
    assert [thread is not threading.current_thread() for thread in threads] == [aside]


@pytest.mark.parametrize("length", [1, 15, 16, 17, 255, 256, 257, 1000])
def test_points_are_parted_where_strokes_end(length: int) -> None:
    said = [[i, 0.0, int((i + 1) % length == 0)] for i in range(1000)]
    parts = [list(part) for part in _portions(said)]
    assert [point for part in parts for point in part] == said
    assert all(part[-1][2] for part in parts[:-1])
    assert all(len(part) >= 256 or sum(p[2] for p in part) == 16 for part in parts[:-1])
    # One stroke more than there may be without it is a part of its own.
    assert all(len(part) < 256 + length and sum(p[2] for p in part) <= 16 for part in parts)


@pytest.mark.parametrize("place", [{"origin": [5, 5]}, {"line_height": 40}, _PLACE])
def test_a_state_knows_its_line(reader: ReaderService, place: dict[str, Any]) -> None:
    with online(reader, model=MODEL, **_PLACE) as session:
        session.ask(points=[[40, 80, 0], [60, 80, 1]])
        token = session.ask(state=True)["state"]
    with reader.client.websocket_connect("/v1/online") as socket:
        answer = Session(socket).ask(model=MODEL, state=token, **place)
    assert "state knows its line" in answer["error"]["message"]
    with online(reader, model=MODEL, state=token, origin=None) as session:
        assert session.ask(points=[[80, 80, 0], [99, 80, 1]])["step"]
