"""What peers hand over is the service's text, whoever is beside it in the batch."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from starlette.testclient import TestClient

from bench.peers import plain_peer
from bench.peers.batch import FIRST_CHUNK_STEPS, BatchWriter, Request
from bench.peers.same_text import compare
from tests.service.serving import running, settings


def test_each_of_a_batch_has_its_text_to_the_end(artifacts: Path) -> None:
    requests = [Request(b"four", 3, 1), Request(b"", 50, 2), Request(b"a long prompt", 40, 3)]
    with running(settings(artifacts)) as service:
        texts = [
            service.text(prompt=r.prompt.decode(), max_tokens=r.max_tokens, seed=r.seed)
            for r in requests
        ]
    writer = BatchWriter(artifacts / "letters")
    assert writer.whole(requests) == texts
    pieces = list(zip(*writer.pieces(requests), strict=True))
    assert list(map("".join, pieces)) == texts
    assert 0 < len(pieces[1][0].encode()) <= FIRST_CHUNK_STEPS  # of the shortest prompt


def test_a_loop_of_pytorch_writes_it_too_whole_and_streamed(made_once: Callable[..., Path]) -> None:
    artifact = made_once("letters")
    writer = BatchWriter(artifact)
    requests = [Request(b"four", length, seed) for seed in range(9) for length in range(2, 14)]
    texts = dict(zip(requests, writer.whole(requests), strict=True))
    # One that is whole, and one that ends within a character.
    cuts = {text.endswith("\ufffd"): request for request, text in texts.items()}
    assert len(cuts) == 2
    with TestClient(plain_peer.create_app(artifact)) as peer:
        for request in cuts.values():
            assert writer.whole([request]) == [texts[request]]
            body = asdict(request) | {"prompt": request.prompt.decode()}
            whole = peer.post("/v1/completions", json=body).json()["text"]
            answer = peer.post("/v1/completions", json=body | {"stream": True}).text
            *events, done = answer.removesuffix("\n\n").split("\n\n")
            streamed = [json.loads(event.removeprefix("data: "))["text"] for event in events]
            assert done == "data: [DONE]"
            for written in whole, "".join(streamed):
                compare("plain", request.seed, texts[request], written)
        body |= {"max_tokens": FIRST_CHUNK_STEPS + 1, "stream": True}
        events = peer.post("/v1/completions", json=body).text.split("\n\n")
        assert len(events[:-2]) == 2  # as the service has it, and not all at the end
