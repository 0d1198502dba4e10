"""A socket to a service, without any client's manners."""

import json
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

LATE_S = 10.0  # of a machine that is busy with other tests
# The whole head of a WebSocket.
SOCKET = (
    b"GET /v1/online HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


class Wire:
    """One connection."""

    def __init__(
        self, url: str, receive_bytes: int | None = None, send_bytes: int | None = None
    ) -> None:
        self._socket = socket.socket()
        for side, size in ((socket.SO_RCVBUF, receive_bytes), (socket.SO_SNDBUF, send_bytes)):
            if size is not None:
                self._socket.setsockopt(socket.SOL_SOCKET, side, size)
        self._socket.settimeout(LATE_S)
        address = urlsplit(url)
        self._socket.connect((address.hostname, address.port))

    def send(self, data: bytes) -> "Wire":
        self._socket.sendall(data)
        return self

    def trickle(self, data: bytes, *, unanswered: bool = False) -> None:
        """A byte at a time, until nobody takes any more, or only while it is `unanswered`."""
        heard = [self._socket] if unanswered else []
        try:
            for byte in data:
                self._socket.sendall(bytes([byte]))
                if select.select(heard, [], [], 0.02)[0]:
                    return
        except OSError:
            return

    def until(self, mark: bytes) -> bytes:
        """What comes, with this in it."""
        received = b""
        while mark not in received:
            received += (more := self._socket.recv(65536))
            assert more, received
        return received

    def some(self, count: int) -> bytes:
        """So many bytes, or what comes until the service closes the connection."""
        received = b""
        with suppress(ConnectionResetError):
            while len(received) < count and (more := self._socket.recv(count - len(received))):
                received += more
        return received

    def rest(self) -> bytes:
        """Everything until the service closes the connection, which must not take for ever."""
        received = b""
        try:
            while len(received) < 2**22 and (more := self._socket.recv(65536)):
                received += more
        except ConnectionResetError:
            pass
        finally:
            self.close()
        return received

    def status(self) -> int:
        """That of the only answer."""
        return int(self.rest().split(b" ", 2)[1])

    def end(self) -> "Wire":
        """Say that nothing more will be sent."""
        self._socket.shutdown(socket.SHUT_WR)
        return self

    def close(self) -> None:
        self._socket.close()


@contextmanager
def wires(url: str, count: int) -> Iterator[list[Wire]]:
    """So many connections."""
    with ExitStack() as stack:
        made = [Wire(url) for _ in range(count)]
        for wire in made:
            stack.callback(wire.close)
        yield made


def code_of(answer: bytes) -> str:
    """The error code in the body of an answer."""
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"])
