"""BentoML with its own adaptive batching: `bentoml serve bench.peers.bentoml_peer:Peer`.

`POST /v1/completions` with `{"requests": [one]}`: a batchable API takes one list and returns one,
so a request and its answer come wrapped in a list, and nothing can be streamed: the first byte is
the whole answer. The artifact is that of the environment variable `PEER_ARTIFACT`.
"""

from typing import Any

import bentoml

from bench.peers.batch import MAX_BATCH, BatchWriter, Request

# Not a window: its dispatcher learns how long to wait, and turns away whom it expects to serve
# later than this. Beyond any latency a load should have, so that it measures and does not reject.
_MAX_LATENCY_MS = 10_000


@bentoml.service(workers=1, traffic={"timeout": 120}, logging={"access": {"enabled": False}})
class Peer:
    """One worker process with one session."""

    def __init__(self) -> None:
        self._writer = BatchWriter()

    @bentoml.api(
        route="/v1/completions", batchable=True, max_batch_size=MAX_BATCH,
        max_latency_ms=_MAX_LATENCY_MS,
    )  # fmt: skip
    def complete(self, requests: list[dict[str, Any]]) -> list[dict[str, str]]:
        """The texts of a batch."""
        texts = self._writer.whole([Request.read(request) for request in requests])
        return [{"text": text} for text in texts]
