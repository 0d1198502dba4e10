"""What is told of a model that proves itself on its own thread while somebody asks about it."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from contract.golden import Verdict
from service.app import create_app
from tests.service.serving import settings

_LOOKS = 16  # at an engine, which is more than any of these answers takes


class _Proving:
    """An engine that is ready, and says so, once it has been looked at so many times."""

    name, stalled_s, threads = "letters", 0.0, 1

    def __init__(self, looks: int) -> None:
        self._left = looks
        self.attested = SimpleNamespace(is_set=self._is_done)

    @property
    def ready(self) -> bool:
        return self._is_done()

    @property
    def done(self) -> bool:
        return self._left < 0

    def _is_done(self) -> bool:
        self._left -= 1
        return self.done


@pytest.fixture(scope="module")
def asked(letters: Path) -> Iterator[Any]:
    """Asks a service for a path, whose model is ready after so many looks."""
    app = create_app(settings(letters))
    client, model = TestClient(app), app.state.models["letters"]
    model.verdict = Verdict(True, 0.0, 1.0, 0.0, 1, "all agree")  # which comes before it is ready

    def ask(path: str, looks: int) -> Any:
        model.engine = _Proving(looks)
        return client.get(path)

    yield ask
    answer = ask("/health", _LOOKS)
    assert (answer.status_code, model.engine.done) == (503, False)  # so all moments were tried


def test_a_model_that_becomes_ready_is_not_told_as_failed(asked: Any) -> None:
    """It would be in an operator's log, and in no other."""
    told = {asked("/readyz", looks).text for looks in range(_LOOKS)}
    assert told == {"ok", "not ready"}
    for looks in range(_LOOKS):
        (model,) = asked("/health", looks).json()["models"].values()
        assert model["failed"] is None


def test_health_says_what_its_status_says(asked: Any) -> None:
    for looks in range(_LOOKS):
        answer = asked("/health", looks)
        good = {"ok": 200, "not ready": 503}
        assert answer.status_code == good[answer.json()["status"]]


def test_a_model_is_told_as_ready_twice_or_not_at_all(asked: Any) -> None:
    for looks in range(_LOOKS):
        (model,) = asked("/health", looks).json()["models"].values()
        assert model["ready"] == (model["state"] == "ready")
