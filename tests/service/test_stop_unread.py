"""A service that stops waits for nobody who does not read."""

import json
import signal
from contextlib import closing
from pathlib import Path

from tests.service.http.wire import Wire
from tests.service.processes import started

_TEXT = json.dumps({"prompt": "z" * 400_000}).encode()  # four times as many bytes of an answer
_POST = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
_NEXT = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_service_that_stops_does_not_wait_for_who_does_not_read(letters: Path) -> None:
    """Nor is it an error of its own, as which it was logged, that a request waits behind that."""
    with (
        started(letters, drain_timeout_s=0) as service,
        closing(Wire(service.url, receive_bytes=4096)) as wire,
    ):
        wire.send(_POST + b"Content-Length: %d\r\n\r\n" % len(_TEXT) + _TEXT)
        wire.until(b"HTTP/1.1 200")
        wire.send(_NEXT)
        service.tell(signal.SIGTERM)
        assert service.ended() == 0
