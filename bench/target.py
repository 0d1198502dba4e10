"""A server under load: where it answers completions, and in which words."""

import json
from dataclasses import dataclass
from typing import Any

PROMPT = "ROMEO:"


@dataclass(frozen=True, slots=True)
class Target:
    """A running server on this machine.

    `wrapped` if the framework's batching wants a list of requests and answers with a list of
    results; `whole` and `streams` say which answers it gives. `ready_s` is from start to ready.
    """

    name: str
    port: int
    pid: int
    ready_s: float
    path: str = "/v1/completions"
    whole: bool = True
    streams: bool = True
    wrapped: bool = False
    model: str | None = None

    @property
    def modes(self) -> list[bool]:
        """Whether its answers are streamed: False, True, or both in this order."""
        return [mode for mode, has in ((False, self.whole), (True, self.streams)) if has]

    def body(self, max_tokens: int, seed: int, *, stream: bool) -> bytes:
        """The JSON of a request."""
        request: dict[str, Any] = {"prompt": PROMPT, "max_tokens": max_tokens, "seed": seed}
        if self.model is not None:
            request["model"] = self.model
        if stream:
            request["stream"] = True
        return json.dumps({"requests": [request]} if self.wrapped else request).encode()

    def text(self, body: bytes) -> str:
        """The text of a whole answer."""
        answer = json.loads(body)
        if self.wrapped:
            (answer,) = answer
        if self.model is not None:
            (answer,) = answer["choices"]
        return str(answer["text"])
