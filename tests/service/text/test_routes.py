"""What an event of a stream says beside its text."""

import asyncio
import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from service.errors import NotReady
from service.http.described import ErrorEvent
from service.state import Moment
from service.text.completion import ByteLogprob, TextEdge, TextPiece
from service.text.routes import _make_call, _resume, _stream, _whole
from service.text.schemas import CompletionRequest

_LIMITS: Any = SimpleNamespace(max_tokens=100, max_request_steps=1000, checkpoint_steps=64)
_MODEL: Any = SimpleNamespace(
    name="letters",
    fingerprint="fp",
    beginning=lambda seed: Moment({}, seed, 0, 0, TextEdge()),
    codec=SimpleNamespace(encode=lambda moment: f"after {moment.drawn}"),
)


def test_each_choice_that_fails_says_which_it_is() -> None:
    async def told() -> list[dict[str, Any]]:
        body = CompletionRequest(n=2, max_tokens=9, stream=True)
        call = _make_call(body, _MODEL, _LIMITS)
        for job in reversed(call.exchange.jobs):
            job.fail(NotReady("gone"))
        return [json.loads(event) async for event in _stream(call)]

    events = [ErrorEvent(**event) for event in asyncio.run(told())]  # as the document tells them
    assert [(e.index, e.error.message) for e in events] == [(1, "gone"), (0, "gone")]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("logprobs", [None, 0, 1])
def test_who_asks_for_the_log_probabilities_of_what_was_written_alone_is_told_them(
    stream: bool, logprobs: int | None
) -> None:
    async def told() -> dict[str, Any]:
        body = CompletionRequest(max_tokens=0, logprobs=logprobs, stream=stream)
        call = _make_call(body, _MODEL, _LIMITS)
        call.exchange.jobs[0].finish(None)
        answer = await anext(_stream(call)) if stream else (await _whole(call)).body
        return json.loads(answer)["choices"][0]["logprobs"]

    lists = {key: [] for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}
    assert asyncio.run(told()) == (None if logprobs is None else lists)


def test_what_to_change_to_go_on_is_all_that_the_request_had_for_its_beginning() -> None:
    async def told() -> dict[str, Any]:
        body = CompletionRequest(prompt="a", max_tokens=9, seed=5, echo=True, stream=True)
        call = _make_call(body, _MODEL, _LIMITS)
        return _resume(call, 0, TextPiece(moment=Moment({}, 5, 0, 4, TextEdge())))

    beginning = {"prompt": "", "echo": False, "n": 1, "seed": None, "model": "letters"}
    assert asyncio.run(told()) == {"resume": beginning | {"state": "after 4", "max_tokens": 5}}


def test_an_answer_tells_when_it_was_made_and_has_a_name_of_its_own() -> None:
    async def heads() -> list[dict[str, Any]]:
        return [_make_call(CompletionRequest(), _MODEL, _LIMITS).head() for _ in range(2)]

    one, other = asyncio.run(heads())
    assert abs(one["created"] - time.time()) < 60
    assert one["id"] != other["id"]


@pytest.mark.parametrize(("stop", "stops"), [("", ()), (["", "x"], (b"x",)), (None, ())])
def test_an_empty_stop_string_stops_nothing(
    stop: str | list[str] | None, stops: tuple[bytes, ...]
) -> None:
    assert CompletionRequest(stop=stop).stops() == stops


def test_each_prompt_of_a_whole_answer_has_offsets_of_its_own() -> None:
    """Without one a text goes on in the character that its state left undecided."""
    edge = TextEdge(undecided=b"\xc3")
    model = SimpleNamespace(**vars(_MODEL))
    model.beginning = lambda seed: Moment({}, seed, 0, 0, edge)

    async def told() -> list[list[int]]:
        body = CompletionRequest(prompt=["", "a"], max_tokens=0, logprobs=0)
        call = _make_call(body, model, _LIMITS)
        for job in call.exchange.jobs:
            job._piece.logprobs.append(ByteLogprob(0xA9, -1.0, []))
            job._finish_reason = "length"
            job.finish(None)
        choices = json.loads((await _whole(call)).body)["choices"]
        return [choice["logprobs"]["text_offset"] for choice in choices]

    assert asyncio.run(told()) == [[0], [1]]
