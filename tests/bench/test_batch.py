"""What peers hand over is the service's text, whoever is beside it in the batch."""

from pathlib import Path

from bench.peers.batch import BatchWriter, Request
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
    assert list(map("".join, zip(*writer.pieces(requests), strict=True))) == texts
