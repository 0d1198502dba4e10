"""`POST /v1/completions`: OpenAI's completions, where a token is a byte, streamed or whole."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic_core import to_json

from service.engine import terms
from service.errors import InvalidRequest, NoSuchRoute, StateMismatch, UnknownModel
from service.http.answers import EventStream, unless_gone
from service.http.described import BUSY, OF_STREAMS, Responses, events, fails
from service.http.exchange import Exchange
from service.settings import Settings
from service.text.completion import (
    ByteLogprob,
    Completion,
    CompletionSpec,
    TextPiece,
)
from service.text.described import Completed, Written
from service.text.model import TextModel, start
from service.text.offsets import TextOffsets
from service.text.schemas import MOST_CHOICES, CompletionRequest

router = APIRouter(tags=["text"])
PATH = "/v1/completions"


_ANSWERS: Responses = {
    200: {
        "model": Completed,
        "content": {"text/event-stream": events(Written)},
        "headers": OF_STREAMS,
    },
    **fails(InvalidRequest, UnknownModel, StateMismatch, *BUSY),
}


@router.post(PATH, responses=_ANSWERS)
async def completions(body: CompletionRequest, request: Request) -> Response:
    """Continue each prompt `n` times."""
    model = request.app.state.models.pick(body.model, TextModel)
    terms.shorten(body.deadline_s)
    call = _make_call(body, model, request.app.state.settings)
    call.exchange.submit(model.engine)
    if body.stream:
        return EventStream(
            _stream(call), call.exchange.cancel, model.engine, numbered=body.event_ids
        )
    return await unless_gone(request, _whole(call), call.exchange.cancel)


@router.post("/v1/chat/completions", include_in_schema=False)
@router.post("/v1/responses", include_in_schema=False)
async def chat() -> Response:
    """These models go on with a text; nobody taught them to answer."""
    raise NoSuchRoute("these models have no chat; POST /v1/completions continues a prompt")


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way: a job per choice."""

    body: CompletionRequest
    model: TextModel
    id: str
    created: int
    seed: int
    exchange: Exchange[TextPiece]

    def head(self) -> dict[str, Any]:
        """What every object of the response begins with."""
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model.name,
            "system_fingerprint": self.model.fingerprint,
            "seed": self.seed,
        } | self.exchange.jobs[0].moment.told()

    def offsets(self, number: int) -> TextOffsets:
        """Of the bytes of one job, from its first on."""
        job = self.exchange.jobs[number]
        return TextOffsets(job.moment.edge.undecided, between=job.asked > 0)

    def usage(self) -> dict[str, int]:
        """Bytes read and written; a prompt counts once, however many choices it has."""
        read = sum(job.asked for job in self.exchange.jobs[:: self.body.n])
        written = sum(job.written for job in self.exchange.jobs)
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        }


def _too_large(read: int, n: int, most: int) -> str:
    """The first field that is too much, whatever those after it are."""
    if read > most:
        return "prompt"
    return "n" if n * read > most else "max_tokens"


def _make_call(body: CompletionRequest, model: TextModel, settings: Settings) -> Call:
    if body.max_tokens > settings.max_tokens:
        raise InvalidRequest(
            f"max_tokens is {body.max_tokens}; it must be at most {settings.max_tokens}",
            "max_tokens",
        )
    prompts = body.prompts()
    if len(prompts) * body.n > MOST_CHOICES:
        raise InvalidRequest(
            f"{len(prompts)} prompts times n = {body.n}; at most {MOST_CHOICES} choices", "n"
        )
    steps = body.n * sum(len(prompt) + body.max_tokens for prompt in prompts)
    if steps > settings.max_request_steps:
        raise InvalidRequest(
            f"{steps:,} bytes to be read and written, n times prompt and max_tokens; at most "
            f"{settings.max_request_steps:,} in one request",
            _too_large(sum(map(len, prompts)), body.n, settings.max_request_steps),
        )
    begun = start(model, body.state, body.seed, body.state_policy)
    exchange: Exchange[TextPiece] = Exchange(streamed=body.stream)
    for prompt in prompts:
        spec = CompletionSpec(
            prompt=prompt,
            max_tokens=body.max_tokens,
            sampling=body.sampling(),
            stops=body.stops(),
            echo=body.echo,
            logprobs=body.logprobs,
            wants_state=body.return_state,
            streamed=body.stream,
            checkpoint_steps=settings.checkpoint_steps if body.resume else None,
        )
        for choice in range(body.n):
            moment = replace(begun, choice=begun.choice + choice)
            exchange.jobs.append(Completion(spec, moment, exchange.sender()))
    call_id = f"cmpl-{secrets.token_hex(12)}"
    return Call(body, model, call_id, int(time.time()), begun.seed, exchange)


async def _whole(call: Call) -> Response:
    texts = [""] * len(call.exchange.jobs)
    logprobs: list[list[ByteLogprob]] = [[] for _ in texts]
    ends: dict[int, TextPiece] = {}
    async for number, piece in call.exchange.pieces():
        texts[number] += piece.text
        logprobs[number] += piece.logprobs
        ends[number] = piece
    if call.body.logprobs is None:
        listed: list[dict[str, Any] | None] = [None] * len(texts)
    else:  # which takes a while, and others are being served meanwhile
        offsets = map(call.offsets, range(len(texts)))
        listed = await asyncio.to_thread(list, map(_logprobs, logprobs, offsets))
    choices = [_choice(call, i, text, listed[i], ends[i]) for i, text in enumerate(texts)]
    # Nobody else runs meanwhile; json.dumps takes five times as long (41 to 44 ms for 8 to 16).
    content = to_json(call.head() | {"choices": choices, "usage": call.usage()})
    return Response(content, media_type="application/json")


async def _stream(call: Call) -> AsyncGenerator[str]:
    """Server-sent events: one per piece, and the usage if asked for."""
    head = json.dumps(call.head())[:-1]  # without its closing brace: encoded once, not per event
    offsets = [call.offsets(number) for number in range(len(call.exchange.jobs))]
    async for number, piece in call.exchange.pieces(failed=True):
        if piece.error is not None:
            yield json.dumps(piece.error.body() | {"index": number} | _resume(call, number, piece))
            continue
        listed = None
        if call.body.logprobs is not None:
            listed = _logprobs(piece.logprobs, offsets[number])
        content = json.dumps(_choice(call, number, piece.text, listed, piece))
        yield f'{head}, "choices": [{content}]}}'
    if call.body.stream_options and call.body.stream_options.include_usage:
        usage = json.dumps(call.usage())
        yield f'{head}, "choices": [], "usage": {usage}}}'


def _choice(
    call: Call, index: int, text: str, logprobs: dict[str, Any] | None, piece: TextPiece
) -> dict[str, Any]:
    choice: dict[str, Any] = {
        "index": index,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": piece.finish_reason,
    }
    if piece.moment is not None and piece.last:
        return choice | {"state": call.model.codec.encode(piece.moment)}
    return choice | _resume(call, index, piece)


def _resume(call: Call, number: int, piece: TextPiece) -> dict[str, Any]:
    """What to change in the request to go on after this piece, if that can be told."""
    if piece.moment is None:
        return {}
    job = call.exchange.jobs[number]
    assert isinstance(job, Completion)
    written = piece.moment.drawn - job.moment.drawn + len(job.drawn_before())
    changes = {
        "prompt": "",
        "echo": False,
        "state": call.model.codec.encode(piece.moment),
        "max_tokens": call.body.max_tokens - written,
        "n": 1,
        "seed": None,
        "model": call.model.name,  # whose default may be another on another replica
    }
    return {"resume": changes}


def _logprobs(entries: Sequence[ByteLogprob], offsets: TextOffsets) -> dict[str, Any]:
    """OpenAI's four parallel lists. A byte is one character of text or part of one."""
    return {
        "tokens": [_token_text(e.token) for e in entries],
        "token_logprobs": [e.logprob for e in entries],
        "top_logprobs": [
            None if e.logprob is None else {_token_text(t): p for t, p in e.top} for e in entries
        ],
        "text_offset": [offsets.of(e.token) for e in entries],
    }


def _token_text(token: int) -> str:
    """ASCII as itself, any other byte in OpenAI's notation for part of a character."""
    return chr(token) if token < 128 else f"bytes:\\x{token:02x}"
