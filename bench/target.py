"""The servers that are measured: how each is started, and in which words it is asked."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ARTIFACTS = Path("artifacts")
MODEL = "shakespeare"
PROMPT = "ROMEO:"
BYTES = 200


@dataclass(frozen=True, slots=True)
class Server:
    """How one server is started, `{port}` standing for its port.

    modes    which answers it gives: False whole, True streamed, or both in this order
    wrapped  its framework's batching wants a list of requests and answers with a list of results
    model    the name a request has to give, if any
    """

    command: tuple[str, ...] = ()
    health: str = "/readyz"
    modes: tuple[bool, ...] = (False, True)
    wrapped: bool = False
    model: str | None = None


SERVERS = {
    "service": Server(("service",), model=MODEL),
    "plain": Server(("bench.peers.plain_peer",)),
    "litserve": Server(("bench.peers.litserve_peer",), "/health", modes=(False,)),
    "litserve-stream": Server(
        ("bench.peers.litserve_peer", "--stream"), "/health", modes=(True,)
    ),
    "bentoml": Server(
        ("bentoml", "serve", "bench.peers.bentoml_peer:Peer", "--port", "{port}",
         "--host", "127.0.0.1", "--api-workers", "1"),
        modes=(False,), wrapped=True,
    ),
    "service-int8": Server(("service",), model=f"{MODEL}-int8"),
}  # fmt: skip
SERVICE, *_PEERS, IN_EIGHT_BITS = SERVERS
PEERS = tuple(_PEERS)


@dataclass(frozen=True, slots=True)
class Target:
    """A running server on this machine; `ready_s` is from start to ready."""

    name: str
    port: int
    pid: int = 0
    ready_s: float = 0.0
    server: Server = field(default_factory=Server)

    def url(self, path: str = "/v1/completions") -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}{path}"

    def body(self, max_tokens: int, seed: int, *, stream: bool) -> bytes:
        """The JSON of a request."""
        request: dict[str, Any] = {"prompt": PROMPT, "max_tokens": max_tokens, "seed": seed}
        if self.server.model is not None:
            request["model"] = self.server.model
        if stream:
            request["stream"] = True
        return json.dumps({"requests": [request]} if self.server.wrapped else request).encode()

    def text(self, body: bytes) -> str:
        """The text of a whole answer."""
        answer = json.loads(body)
        if self.server.wrapped:
            (answer,) = answer
        if self.server.model is not None:
            (answer,) = answer["choices"]
        return str(answer["text"])
