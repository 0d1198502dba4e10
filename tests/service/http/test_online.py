"""The WebSocket that follows a caller: how a session begins, and that it holds nothing."""

import asyncio
import json
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from service.http.online import Sessions
from tests.service.writing import InkService, online


def test_an_opening_is_answered_with_what_was_opened(ink: InkService) -> None:
    for name, kind in (("letters", "language"), ("scrawl", "handwriting")):
        fingerprint = ink.client.get(f"/v1/models/{name}").json()["system_fingerprint"]
        with online(ink) as session:
            assert session.ask(model=name, seed=3) == {
                "model": name,
                "kind": kind,
                "seed": 3,
                "system_fingerprint": fingerprint,
            }


@pytest.mark.parametrize("limits", [{"bias": 5, "line_height": 400}, {"line_height": 16}])
def test_an_opening_may_say_as_much_as_is_told(ink: InkService, limits: dict[str, int]) -> None:
    with online(ink) as session:
        assert session.ask(model="scrawl", text="a", seed=3, **limits)["seed"] == 3


def test_numbers_in_json_have_six_digits_after_the_point(ink: InkService) -> None:
    with online(ink, model="letters") as session:
        found = session.ask(bytes=[65])["log_probabilities"]
    assert found == [round(number, 6) for number in found]


def test_a_caller_that_leaves_holds_no_slot(ink: InkService) -> None:
    for _ in range(3):
        with online(ink, model="scrawl", text="a") as session:
            session.ask(point=[0, 0, 0])
    assert ink.metric("requests_running", model="scrawl") == 0
    assert ink.lines(text="a", seed=1)


@pytest.mark.in_process
def test_every_message_has_the_time_of_a_request(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreed: list[float] = []
    monkeypatch.setattr("service.http.online.terms", SimpleNamespace(agree=agreed.append))
    with online(ink, model="letters") as session:
        for _ in range(3):
            session.ask(write=2)
    assert agreed == [ink.app.state.settings.deadline_s] * 4


class _Says:
    """A socket with a message, or an engine: whatever is asked of either."""

    def __init__(self, said: str | bytes = '{"write": 1}') -> None:
        self._said = said

    async def receive(self) -> dict[str, str | bytes]:
        kind = "text" if isinstance(self._said, str) else "bytes"
        return {"type": "websocket.receive", kind: self._said}


def test_who_was_at_work_when_its_model_went_or_the_service_ended_is_told_why() -> None:
    """What has come meanwhile is not answered."""
    sessions, socket = Sessions(5), _Says()
    gone, other = (_Says() for _ in range(2))

    def heard(engine: Any) -> Any:
        try:
            return asyncio.run(sessions.message(socket, engine))  # type: ignore[arg-type]
        except TimeoutError:
            return sessions.why(engine)

    assert sessions.why(None) == (1001, "no message came for 5 s")
    sessions.leave(gone)  # type: ignore[arg-type]
    assert heard(gone) == (1012, "the model is being replaced")
    assert heard(other) == heard(None) == {"write": 1}
    sessions.end()
    assert heard(gone) == heard(other) == heard(None) == (1012, "the service is stopping")


def test_a_message_that_has_come_keeps_no_model(collect_own: Callable[[], int]) -> None:
    """Or every message would leave something behind, and a model stay after it was replaced."""
    sessions, engine, socket = Sessions(5), _Says(), _Says()
    asyncio.run(sessions.message(socket, engine))  # type: ignore[arg-type]
    kept = weakref.ref(engine)
    del engine
    collect_own()
    assert kept() is None


@pytest.mark.parametrize(
    ("said", "read_at_once"),
    [(json.dumps([0] * 20_000), 1), (bytes(40_000), 1), (json.dumps([0] * 300), 4), (b"", 4)],
    ids=["a large text", "a large frame", "a small text", "an empty frame"],
)
def test_large_messages_that_come_together_are_read_one_by_one(
    said: str | bytes, read_at_once: int
) -> None:
    """Whoever asks for little meanwhile waits for one of them."""

    async def ask() -> int:
        sessions = Sessions(5)
        socket: Any = _Says(said)
        reading = [asyncio.create_task(sessions.message(socket)) for _ in range(4)]
        await asyncio.sleep(0)  # one round of the event loop
        done = sum(task.done() for task in reading)
        await asyncio.gather(*reading)
        return done

    assert asyncio.run(ask()) == read_at_once
