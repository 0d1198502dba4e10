"""LitServe with its own batching: `PEER_PORT=8001 python -m bench.peers.litserve_peer`.

`POST /v1/completions`. One worker process runs batches of at most 32 whole completions, gathered
for 5 ms. An API of LitServe either streams or does not, so `--stream` decides for the process;
streamed batches go out chunk by chunk, and every response stays open until the batch has ended.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import litserve

from bench.peers.batch import MAX_BATCH, PORT, WINDOW_S, BatchWriter, Request

_TIME_LIMIT_S = 120


class Whole(litserve.LitAPI):
    """Answers `{"text"}` when the batch is done."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            max_batch_size=MAX_BATCH, batch_timeout=WINDOW_S, api_path="/v1/completions", **options
        )

    def setup(self, device: str) -> None:
        self._writer = BatchWriter()

    def decode_request(self, request: dict[str, Any]) -> Request:
        return Request.read(request)

    def predict(self, x: list[Request]) -> list[str]:
        return self._writer.whole(x)

    # LitServe would make a declared type the response's schema and check every answer against it.
    def encode_response(self, output: str) -> Any:
        return {"text": output}


class Streamed(Whole):
    """Answers server-sent events `{"text"}`, then `[DONE]`."""

    def predict(self, x: list[Request]) -> Iterator[list[str]]:
        yield from self._writer.pieces(x)

    def encode_response(self, output: Iterator[list[str]]) -> Any:
        texts: list[str] = []
        for texts in output:
            yield [_event(text) if text else "" for text in texts]
        yield ["data: [DONE]\n\n"] * len(texts)


def _event(text: str) -> str:
    return f"data: {json.dumps({'text': text})}\n\n"


def main(*, streamed: bool) -> None:
    """Serve until told to stop."""
    api = (Streamed if streamed else Whole)(stream=streamed)
    server = litserve.LitServer(
        api, accelerator="cpu", devices=1, workers_per_device=1, timeout=_TIME_LIMIT_S
    )
    server.run(
        host="127.0.0.1", port=PORT, num_api_servers=1, log_level="error",
        generate_client_file=False,
    )  # fmt: skip


if __name__ == "__main__":
    main(streamed="--stream" in sys.argv)
