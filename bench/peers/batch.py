"""Whole completions side by side by the served graph, as a peer's batching hands them over.

Rows of a batch start together and run to the longest: that is what batching whole requests means.
Shapes: T steps, B rows.
"""

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from contract.noise import UniformStream
from service.artifact import Arrays, Port, load_artifact
from service.settings import Settings
from service.text.completion import Sampling

MAX_BATCH = 32
# How long a framework gathers requests before it runs what it has: short against the 30 ms that
# one completion takes, long against what 16 clients need to send their next request.
WINDOW_S = 0.005
THREADS = os.cpu_count() or 1  # as the service gets
# A streamed answer goes out in the portions of the service: few steps first, then many.
FIRST_CHUNK_STEPS, CHUNK_STEPS = (
    Settings.model_fields[name].default for name in ("first_chunk_steps", "chunk_steps")
)


@dataclass(frozen=True, slots=True)
class Request:
    """What every peer is asked for; counts are bytes."""

    prompt: bytes
    max_tokens: int
    seed: int

    @classmethod
    def read(cls, body: dict[str, Any]) -> "Request":
        """Of a JSON body. Raises `KeyError` for a field that is not there."""
        return cls(str(body["prompt"]).encode(), int(body["max_tokens"]), int(body["seed"]))

    @property
    def steps(self) -> int:
        """Steps of the graph it takes."""
        return len(self.prompt) + self.max_tokens


class BatchWriter:
    """A session on the sequence graph, neutral options, and no state between calls."""

    def __init__(self, artifact: Path, threads: int = THREADS) -> None:
        loaded = load_artifact(artifact)
        self._ports = loaded.manifest.ports
        filters = loaded.manifest.filters
        options = Sampling().row()
        self._row = {
            p.name: _filled(options[p.name], p) for p in self._ports.row if p.name not in filters
        }
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = threads
        settings.inter_op_num_threads = 1
        graph = artifact / loaded.manifest.graphs.scan.plain
        self._session = ort.InferenceSession(graph, settings, providers=["CPUExecutionProvider"])

    def whole(self, requests: Sequence[Request]) -> list[str]:
        """The text of each request, all of a batch in one run."""
        inputs = self._inputs(requests)
        (written,) = self._session.run(["next"], self._state(len(requests)) | inputs)
        return [
            written[len(r.prompt) : r.steps, i].astype(np.uint8).tobytes().decode(errors="replace")
            for i, r in enumerate(requests)
        ]

    def pieces(self, requests: Sequence[Request]) -> Iterator[list[str]]:
        """What each request gets after each chunk; nothing for one whose text is over."""
        inputs = self._inputs(requests)
        state = self._state(len(requests))
        names = [f"{name}_after" for name in state]
        decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in requests]
        steps = max(r.steps for r in requests)
        start, length = 0, FIRST_CHUNK_STEPS + min(len(r.prompt) for r in requests)
        per_step = {port.name for port in self._ports.step}
        while start < steps:
            end = min(steps, start + length)
            chunk = {n: a[start:end] if n in per_step else a for n, a in inputs.items()}
            written, *after = self._session.run(["next", *names], state | chunk)
            state = dict(zip(state, after, strict=True))
            yield [
                decoder.decode(_part(written[:, i], request, start), end >= request.steps)
                for i, (request, decoder) in enumerate(zip(requests, decoders, strict=True))
            ]
            start, length = end, CHUNK_STEPS

    def _state(self, rows: int) -> Arrays:
        return {p.name: np.full((rows, *p.shape), p.initial, p.dtype) for p in self._ports.state}

    def _inputs(self, requests: Sequence[Request]) -> Arrays:
        """Of all steps `(T, B, ...)` and all rows `(B, ...)`."""
        shape = max(r.steps for r in requests), len(requests)
        inputs = {p.name: np.zeros((*shape, *p.shape), p.dtype) for p in self._ports.step}
        for i, request in enumerate(requests):
            known = len(request.prompt)
            inputs["forced"][:known, i] = np.frombuffer(request.prompt, np.uint8)
            inputs["force"][:known, i] = True
            uniforms = UniformStream(request.seed).take(0, request.max_tokens)
            inputs["uniform"][known : request.steps, i] = uniforms.reshape(
                -1, *inputs["uniform"].shape[2:]
            )
        rows = len(requests)
        row = {name: np.repeat(value[None], rows, axis=0) for name, value in self._row.items()}
        return inputs | row


def _filled(value: Any, port: Port) -> Any:
    return np.asarray(value, port.dtype).reshape(port.shape)


def _part(column: Any, request: Request, start: int) -> bytes:
    """Generated bytes of a chunk that begins with step `start`, up to the end of the request."""
    part = column[max(0, len(request.prompt) - start) : max(0, request.steps - start)]
    return bytes(part.astype(np.uint8))
