"""FastAPI and a PyTorch loop, as one would write it on a first day:
`PEER_PORT=8001 python -m bench.peers.plain_peer`.

`POST /v1/completions`, whole or streamed. No batching. One model on all cores is used by one
request at a time: a whole answer keeps the lock, a stream gives it to others between its events.
"""

import codecs
import json
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel
from torch import Tensor

from bench.peers.batch import ARTIFACT, FIRST_CHUNK_STEPS, PORT, THREADS, portions
from contract.noise import UniformStream
from export.artifact import load_model, read_artifact
from export.text.golden import options
from models.generation import LanguageStep


class Body(BaseModel):
    """A request; `max_tokens` counts bytes."""

    prompt: str
    max_tokens: int
    seed: int
    stream: bool = False


class Writer:
    """The model in eager mode, batch 1."""

    def __init__(self, artifact: Path) -> None:
        model = load_model(artifact, read_artifact(artifact)).eval()
        self._step = LanguageStep(model, filtered=False)
        row = options(({},))
        self._row = [row[port.name] for port in self._step.row_ports]

    def pieces(self, body: Body, lock: Any) -> Iterator[str]:
        """The text in portions as long as the service's, the lock held during each."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        uniforms = torch.from_numpy(UniformStream(body.seed).take(0, body.max_tokens))
        prompt = torch.tensor(list(body.prompt.encode()))
        with lock:
            state = self._step.initial_state(1)
            state, _ = self._run(state, prompt, torch.zeros(len(prompt)), force=True)
        for start, end in portions(body.max_tokens, FIRST_CHUNK_STEPS):
            part = uniforms[start:end]
            with lock:
                state, written = self._run(state, torch.zeros_like(part).long(), part, force=False)
            yield decoder.decode(written, end == body.max_tokens)

    @torch.inference_mode()
    def _run(
        self, state: tuple[Tensor, ...], forced: Tensor, uniforms: Tensor, *, force: bool
    ) -> tuple[tuple[Tensor, ...], bytes]:
        """Steps whose bytes are `forced (T,)`, or drawn by `uniforms (T,)`."""
        forces, written = torch.tensor([force]), bytearray()
        for byte, uniform in zip(forced.split(1), uniforms.split(1), strict=True):
            results = self._step(*state, byte, forces, uniform, *self._row)
            state = tuple(results[: len(state)])
            written.append(int(state[0]))
        return state, bytes(written)


def create_app(artifact: Path) -> FastAPI:
    """The application."""
    app = FastAPI()
    writer, lock = Writer(artifact), threading.Lock()

    @app.get("/readyz")
    def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/v1/completions")
    def complete(body: Body) -> Response:
        if body.stream:
            events = _events(writer.pieces(body, lock))
            return StreamingResponse(events, media_type="text/event-stream")
        with lock:
            return JSONResponse({"text": "".join(writer.pieces(body, nullcontext()))})

    return app


def _events(pieces: Iterator[str]) -> Iterator[str]:
    for piece in pieces:
        yield f"data: {json.dumps({'text': piece})}\n\n"
    yield "data: [DONE]\n\n"


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    uvicorn.run(create_app(ARTIFACT), port=PORT, log_level="error")
