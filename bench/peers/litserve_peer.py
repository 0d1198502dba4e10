"""LitServe with its own batching: `python -m bench.peers.litserve_peer --port 8001`.

`POST /v1/completions`. One worker process runs batches of at most 32 whole completions, gathered
for 5 ms. An API of LitServe either streams or does not, so `--stream` decides for the process;
streamed batches go out chunk by chunk, and every response stays open until the batch has ended.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import litserve

from bench.peers.batch import MAX_BATCH, THREADS, WINDOW_S, BatchWriter, Request

_TIME_LIMIT_S = 120


class Whole(litserve.LitAPI):
    """Answers `{"text"}` when the batch is done."""

    def __init__(self, artifact: Path, threads: int, **options: Any) -> None:
        super().__init__(
            max_batch_size=MAX_BATCH,
            batch_timeout=WINDOW_S,
            api_path="/v1/completions",
            **options,
        )
        self._artifact = artifact
        self._threads = threads

    def setup(self, device: str) -> None:
        self._writer = BatchWriter(self._artifact, self._threads)

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


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--artifact", type=Path, default=Path("artifacts", "shakespeare"))
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--stream", action="store_true")
    options = parser.parse_args()
    kind = Streamed if options.stream else Whole
    api = kind(options.artifact, options.threads, stream=options.stream)
    server = litserve.LitServer(
        api, accelerator="cpu", devices=1, workers_per_device=1, timeout=_TIME_LIMIT_S
    )
    server.run(
        host="127.0.0.1", port=options.port, num_api_servers=1, log_level="error",
        generate_client_file=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
