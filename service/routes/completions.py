"""`POST /v1/completions`: OpenAI's completions, where a token is a byte, streamed or whole."""

import asyncio
import codecs
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.errors import InvalidRequest
from service.language import ByteLogprob, Completion, CompletionSpec, Piece
from service.metrics import Metrics
from service.models import ServedModel
from service.schemas import MOST_CHOICES, CompletionRequest
from service.state import Moment

router = APIRouter()

_CLIENT_CLOSED_REQUEST = 499  # nobody reads it; nginx's number for the log


@router.post("/v1/completions")
async def completions(body: CompletionRequest, request: Request) -> Response:
    """Continue each prompt `n` times."""
    model: ServedModel = request.app.state.models[body.model]
    if model.artifact.manifest.kind != "language":
        raise InvalidRequest(f"model {body.model!r} writes ink: POST /v1/handwriting", "model")
    call = _make_call(body, model, request.app.state.settings.max_tokens)
    model.engine.submit([job for job in call.jobs if not job.finished_at_once])
    for job in call.jobs:
        if job.finished_at_once:
            job.finish(job.state if job.wants_state else None)
    metrics: Metrics = request.app.state.metrics
    if body.stream:
        return _EventStream(call, metrics)
    async with _cancelled_on_disconnect(request, call):
        return await _whole(call, metrics)


class _EventStream(StreamingResponse):
    """Server-sent events of a call, which ends with the response even if that never began."""

    def __init__(self, call: "Call", metrics: Metrics) -> None:
        super().__init__(_stream(call, metrics), media_type="text/event-stream")
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._call.cancel()


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way: a job per choice, and the queue their pieces arrive in."""

    body: CompletionRequest
    model: ServedModel
    id: str
    created: int
    seed: int
    jobs: Sequence[Completion]
    # (choice, piece); None when the client has gone
    pieces: asyncio.Queue[tuple[int, Piece] | None]

    def cancel(self) -> None:
        """Give the slots back within a chunk; nothing happens to what has ended."""
        for job in self.jobs:
            job.cancelled = True

    def head(self) -> dict[str, Any]:
        """What every object of the response begins with."""
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.body.model,
            "system_fingerprint": self.model.fingerprint,
            "seed": self.seed,
        }

    def usage(self) -> dict[str, int]:
        """Bytes read and written; a prompt counts once, however many choices it has."""
        read = sum(len(job.spec.prompt) for job in self.jobs[:: self.body.n])
        written = sum(job.written for job in self.jobs)
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        }


def _make_call(body: CompletionRequest, model: ServedModel, most_tokens: int) -> Call:
    if body.max_tokens > most_tokens:
        raise InvalidRequest(
            f"max_tokens is {body.max_tokens}; it must be at most {most_tokens}", "max_tokens"
        )
    prompts = body.prompts()
    if len(prompts) * body.n > MOST_CHOICES:
        raise InvalidRequest(
            f"{len(prompts)} prompts times n = {body.n}; at most {MOST_CHOICES} choices", "n"
        )
    start = _start(body, model)
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[tuple[int, Piece] | None] = asyncio.Queue()

    def send_to(choice: int) -> Any:
        return lambda piece: loop.call_soon_threadsafe(pieces.put_nowait, (choice, piece))

    jobs: list[Completion] = []
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
        )
        for choice in range(body.n):
            moment = replace(start, choice=start.choice + choice)
            jobs.append(Completion(spec, moment, send_to(len(jobs))))
    return Call(
        body, model, f"cmpl-{secrets.token_hex(12)}", int(time.time()), start.seed, jobs, pieces
    )


def _start(body: CompletionRequest, model: ServedModel) -> Moment:
    """Where the request begins: its state token's moment, or nowhere yet."""
    if body.state is None:
        seed = secrets.randbits(53) if body.seed is None else body.seed
        return Moment(model.artifact.initial_state(), seed, 0, 0, b"")
    moment = model.codec.decode(body.state)
    return moment if body.seed is None else replace(moment, seed=body.seed, choice=0, drawn=0)


async def _whole(call: Call, metrics: Metrics) -> Response:
    texts = [""] * len(call.jobs)
    logprobs: list[list[ByteLogprob]] = [[] for _ in call.jobs]
    ends: dict[int, Piece] = {}
    while len(ends) < len(call.jobs):
        arrived = await call.pieces.get()
        if arrived is None:
            return Response(status_code=_CLIENT_CLOSED_REQUEST)
        choice, piece = arrived
        texts[choice] += piece.text
        logprobs[choice] += piece.logprobs
        if piece.error is not None:
            raise piece.error
        if piece.last:
            ends[choice] = piece
            _count(call, choice, piece, metrics)
    choices = []
    for i, text in enumerate(texts):
        listed = None if call.body.logprobs is None else _logprobs(logprobs[i], 0)
        choices.append(_choice(call, i, text, listed, ends[i]))
    return JSONResponse(call.head() | {"choices": choices, "usage": call.usage()})


async def _stream(call: Call, metrics: Metrics) -> AsyncIterator[bytes]:
    """Server-sent events: one per piece, the usage if asked for, and `[DONE]`."""
    head = json.dumps(call.head())[:-1]  # without its closing brace: encoded once, not per event
    offsets = [0] * len(call.jobs)
    open_choices = len(call.jobs)
    try:
        while open_choices:
            arrived = await call.pieces.get()
            assert arrived is not None  # only a watched, whole response sends None
            choice, piece = arrived
            if piece.error is not None:
                yield f"data: {json.dumps(piece.error.body())}\n\n".encode()
                break
            listed = None
            if call.body.logprobs is not None:
                listed = _logprobs(piece.logprobs, offsets[choice])
            offsets[choice] += len(piece.text)
            content = json.dumps(_choice(call, choice, piece.text, listed, piece))
            yield f'data: {head}, "choices": [{content}]}}\n\n'.encode()
            if piece.last:
                open_choices -= 1
                _count(call, choice, piece, metrics)
        if call.body.stream_options and call.body.stream_options.include_usage:
            usage = json.dumps(call.usage())
            yield f'data: {head}, "choices": [], "usage": {usage}}}\n\n'.encode()
        yield b"data: [DONE]\n\n"
    finally:
        call.cancel()


@asynccontextmanager
async def _cancelled_on_disconnect(request: Request, call: Call) -> AsyncIterator[None]:
    """Watch the connection of a response that has not begun, and end its jobs when it closes."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        call.pieces.put_nowait(None)

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()
        call.cancel()


def _choice(
    call: Call, index: int, text: str, logprobs: dict[str, Any] | None, piece: Piece
) -> dict[str, Any]:
    choice: dict[str, Any] = {
        "index": index,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": piece.finish_reason,
    }
    if piece.moment is not None:
        choice["state"] = call.model.codec.encode(piece.moment)
    return choice


def _logprobs(entries: Sequence[ByteLogprob], offset: int) -> dict[str, Any]:
    """OpenAI's four parallel lists. A byte is one character of text or part of one; all bytes of a
    character share its offset."""
    tokens = [_token_text(e.token) for e in entries]
    offsets: list[int] = []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for entry in entries:
        pending = len(decoder.getstate()[0])
        text = decoder.decode(bytes([entry.token]))
        left = len(decoder.getstate()[0])
        if pending and left <= pending and (left or len(text) > 1):
            offset += 1  # the character before was broken off; this byte begins another
        offsets.append(offset)
        if not left:
            offset += 1
    return {
        "tokens": tokens,
        "token_logprobs": [e.logprob for e in entries],
        "top_logprobs": [{_token_text(t): p for t, p in e.top} for e in entries],
        "text_offset": offsets,
    }


def _token_text(token: int) -> str:
    """ASCII as itself, any other byte in OpenAI's notation for part of a character."""
    return chr(token) if token < 128 else f"bytes:\\x{token:02x}"


def _count(call: Call, choice: int, piece: Piece, metrics: Metrics) -> None:
    job, name = call.jobs[choice], call.body.model
    now = time.perf_counter()
    metrics.finished.labels(name, piece.finish_reason).inc()
    metrics.tokens_in.labels(name).inc(len(job.spec.prompt))
    metrics.tokens_out.labels(name).inc(job.written)
    metrics.total_s.labels(name).observe(now - job.arrived_s)
    if job.first_run_s is not None:
        metrics.queue_s.labels(name).observe(job.first_run_s - job.arrived_s)
    if job.first_byte_s is not None:
        metrics.first_byte_s.labels(name).observe(job.first_byte_s - job.arrived_s)
        if job.written > 1:
            mean_s = (now - job.first_byte_s) / (job.written - 1)
            metrics.inter_token_s.labels(name).observe(mean_s)
