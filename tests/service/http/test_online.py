"""The WebSocket that follows a caller: how a session begins, and that it holds nothing."""

import asyncio
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

    async def receive(self) -> dict[str, str]:
        return {"type": "websocket.receive", "text": '{"write": 1}'}


def test_who_was_at_work_when_its_model_went_or_the_service_ended_is_told_why() -> None:
    """What has come meanwhile is not answered."""
    sessions, socket = Sessions(idle_timeout_s=5), _Says()
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
