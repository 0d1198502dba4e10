"""Another secret takes the place of one that signs state tokens; no token is refused meanwhile."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.artifact import Artifact
from service.errors import InvalidRequest, ServiceError
from service.state import Moment, StateCodec
from service.text.completion import TextEdge
from tests.service.serving import listening, settings

_OLD, _NEW, _OLDER = "the secret until today", "the secret from now on", "one of long ago: 0123"
_OTHERS = (_OLD.encode(), _OLDER.encode())
_STEPS: list[tuple[str, tuple[str, ...]]] = [
    (_OLD, ()), (_OLD, (_NEW,)), (_NEW, (_OLD, _OLDER)), (_NEW, ()),
]  # fmt: skip
_ASKED = {"model": "letters", "max_tokens": 5, "return_state": True}


def _codec(artifact: Artifact, key: str, *fallbacks: bytes) -> StateCodec[TextEdge]:
    return StateCodec(key.encode(), artifact, "here", TextEdge, fallbacks)


def _moment(artifact: Artifact) -> Moment[TextEdge]:
    return Moment(artifact.initial_state(), 7, 0, 0, TextEdge())


def test_a_token_of_any_of_the_secrets_is_good(artifact: Artifact) -> None:
    rotated = _codec(artifact, _NEW, *_OTHERS)
    for key in (_NEW, _OLD, _OLDER):
        token = _codec(artifact, key).encode(_moment(artifact))
        assert rotated.decode(token).seed == 7
        with pytest.raises(InvalidRequest):
            rotated.decode(f"{token[:-2]}{'AB' if token[-2:] != 'AB' else 'BA'}")
    with pytest.raises(InvalidRequest):
        rotated.decode(_codec(artifact, "the secret of nobody").encode(_moment(artifact)))


def test_tokens_of_fallbacks_are_counted(artifact: Artifact) -> None:
    heard: list[None] = []
    rotated = StateCodec(
        _NEW.encode(), artifact, "here", TextEdge, _OTHERS, lambda: heard.append(None)
    )
    for key, count in ((_NEW, 0), (_OLD, 1), (_OLDER, 2), (_NEW, 2)):
        rotated.decode(_codec(artifact, key).encode(_moment(artifact)))
        assert len(heard) == count
    elsewhere = StateCodec(_OLD.encode(), artifact, "elsewhere", TextEdge)
    for refused in (_codec(artifact, "the secret of nobody"), elsewhere):
        with pytest.raises(ServiceError):
            rotated.decode(refused.encode(_moment(artifact)))
    assert len(heard) == 2


def test_the_secret_and_none_of_its_fallbacks_signs(artifact: Artifact) -> None:
    token = _codec(artifact, _NEW, *_OTHERS).encode(_moment(artifact))
    assert token == _codec(artifact, _NEW).encode(_moment(artifact))


class _Fleet:
    """Two replicas, and what is asked of one of them."""

    def __init__(self, artifacts: Path, stack: ExitStack) -> None:
        self._artifacts, self._stack = artifacts, stack
        self._running = [ExitStack(), ExitStack()]
        self._urls = ["", ""]
        for each in self._running:
            stack.push(each)

    def replace(self, number: int, key: str, fallbacks: tuple[str, ...]) -> None:
        """Stop a replica and start one with these secrets in its place."""
        self._running[number].close()
        chosen = settings(self._artifacts, state_key=key, state_key_fallbacks=fallbacks)
        self._urls[number], _ = self._running[number].enter_context(listening(chosen))

    def ask(self, number: int, **body: Any) -> httpx.Response:
        """The answer of a replica to a request for a few bytes and a token."""
        return httpx.post(f"{self._urls[number]}/v1/completions", json=_ASKED | body, timeout=60)

    def has_taken_of_fallbacks(self, number: int) -> bool:
        """Whether a replica has accepted a token of a fallback, as its metrics say."""
        counter = 'evenkeel_fallback_state_tokens_total{model="letters"} '
        _, _, after = httpx.get(f"{self._urls[number]}/metrics").text.partition(counter)
        return float(after.split()[0]) > 0


def test_a_fleet_is_given_another_secret_one_replica_after_the_other(artifacts: Path) -> None:
    """A caller who goes on from each last token, at whichever replica, gets what nobody disturbs,
    and who has kept the first one may use it until the last step."""
    with ExitStack() as stack:
        fleet = _Fleet(artifacts, stack)
        for number in range(2):
            fleet.replace(number, *_STEPS[0])
        (choice,) = fleet.ask(0, prompt="It ", seed=7).json()["choices"]
        first, pieces = choice["state"], [choice]
        for step in _STEPS[1:]:
            for replaced in range(2):
                fleet.replace(replaced, *step)
                for number in (replaced, 1 - replaced):
                    pieces += fleet.ask(number, state=pieces[-1]["state"]).json()["choices"]
                    kept = step[1] or number > replaced
                    assert fleet.ask(number, state=first).status_code == (200 if kept else 400)
                assert fleet.has_taken_of_fallbacks(replaced) == (step == _STEPS[2])
        (whole,) = fleet.ask(0, prompt="It ", seed=7, max_tokens=5 * len(pieces)).json()["choices"]
        assert whole["text"] == "".join(piece["text"] for piece in pieces)
