"""FastAPI and a PyTorch loop, as one would write it on a first day:
`python -m bench.peers.plain_peer --port 8001`.

`POST /v1/completions`, whole or streamed. No batching. One model on all cores is used by one
request at a time: a whole answer keeps the lock, a stream gives it to others between its events.
"""

import argparse
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

from bench.peers.batch import CHUNK_STEPS, FIRST_CHUNK_STEPS, THREADS
from contract.noise import UniformStream
from export.convert import load_model, read_artifact
from export.text.golden import default_options, initial_state
from models.generation import LanguageStep
from models.language import LanguageModel

Tensors = tuple[torch.Tensor, ...]


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
        assert isinstance(model, LanguageModel)
        self._step = LanguageStep(model, filtered=False)
        self._options = default_options(self._step, 1)
        self._carried = len(self._step.state_ports)

    def pieces(self, body: Body, lock: Any) -> Iterator[str]:
        """The text in portions as long as the service's, the lock held during each."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        uniforms = torch.from_numpy(UniformStream(body.seed).take(0, body.max_tokens))
        state = initial_state(self._step, 1)
        with lock:
            state = self._read(state, body.prompt.encode())
        start, length = 0, FIRST_CHUNK_STEPS
        while start < body.max_tokens:
            end = min(body.max_tokens, start + length)
            with lock:
                state, written = self._write(state, uniforms[start:end])
            yield decoder.decode(written, end == body.max_tokens)
            start, length = end, CHUNK_STEPS

    @torch.inference_mode()
    def _read(self, state: Tensors, prompt: bytes) -> Tensors:
        yes, unused = torch.ones(1, dtype=torch.bool), torch.zeros(1)
        for byte in prompt:
            state = self._next(state, torch.tensor([byte]), yes, unused)
        return state

    @torch.inference_mode()
    def _write(self, state: Tensors, uniforms: torch.Tensor) -> tuple[Tensors, bytes]:
        no, unused = torch.zeros(1, dtype=torch.bool), torch.zeros(1, dtype=torch.int64)
        written = bytearray()
        for uniform in uniforms:
            state = self._next(state, unused, no, uniform)
            written.append(int(state[0]))
        return state, bytes(written)

    def _next(
        self, state: Tensors, forced: torch.Tensor, force: torch.Tensor, uniform: torch.Tensor
    ) -> Tensors:
        shape = (1, *self._step.step_ports[2].shape)
        results = self._step(*state, forced, force, uniform.reshape(shape), *self._options)
        return tuple(results[: self._carried])


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
            return StreamingResponse(_events(writer.pieces(body, lock)), 200, None, _EVENTS)
        with lock:
            return JSONResponse({"text": "".join(writer.pieces(body, nullcontext()))})

    return app


_EVENTS = "text/event-stream"


def _events(pieces: Iterator[str]) -> Iterator[str]:
    for piece in pieces:
        yield f"data: {json.dumps({'text': piece})}\n\n"
    yield "data: [DONE]\n\n"


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--artifact", type=Path, default=Path("artifacts", "shakespeare"))
    parser.add_argument("--threads", type=int, default=THREADS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    uvicorn.run(create_app(options.artifact), port=options.port, log_level="error")


if __name__ == "__main__":
    main()
