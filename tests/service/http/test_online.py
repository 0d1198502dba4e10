"""The WebSocket that follows a caller: how a session begins, and that it holds nothing."""

from types import SimpleNamespace

import pytest

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
