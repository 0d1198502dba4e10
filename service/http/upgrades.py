"""Offers of another protocol that nobody here speaks: HTTP/2 over plain TCP, as Java's client and
`curl --http2` make them with every request.

Who is offered one may ignore it (RFC 9110 §7.8). httptools, though, takes all that follows such a
head for the other protocol's, the body among it.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from httptools import HttpParserUpgrade, HttpRequestParser


class Head(Protocol):
    """What has been parsed of a request: its address, and its headers with names in lower case."""

    url: bytes
    headers: list[tuple[bytes, bytes]]

    def _should_upgrade(self) -> bool: ...


def upgrade_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The protocol that is offered for this connection, if one is. Lines of one name are one list
    (RFC 9110 §5.3)."""
    given = {
        wanted: b",".join(value for name, value in headers if name == wanted).lower()
        for wanted in (b"connection", b"upgrade")
    }
    options = [option.strip() for option in given[b"connection"].split(b",")]
    return given[b"upgrade"] or None if b"upgrade" in options else None


class RequestParser:
    """A parser that reads on where another protocol than WebSocket is offered, as if it had not
    been. The connection it tells what it finds is to pass over a request that `is_offer`, which
    comes again without."""

    def __init__(self, connection: Head) -> None:
        self._connection = connection
        self._begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def is_offer(self) -> bool:
        """Whether the head that has just been parsed offers what is not wanted."""
        if not self._parser.should_upgrade():  # of nearly every request
            return False
        # What CONNECT asks for is no offer.
        offers = any(name == b"upgrade" for name, _ in self._connection.headers)
        return offers and not self._connection._should_upgrade()

    def feed_data(self, data: bytes) -> None:
        """As httptools has it: raises `HttpParserUpgrade` for a WebSocket alone."""
        while True:
            try:
                self._parser.feed_data(data)
                return
            except HttpParserUpgrade as upgrade:
                if not self.is_offer():
                    raise
                (begin,) = upgrade.args
                data = self._head_again() + data[begin:]
                self._begin()

    def _begin(self) -> None:
        self._parser = HttpRequestParser(self._connection)
        # As uvicorn has it: what follows a request that closes the connection is passed over.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def _head_again(self) -> bytes:
        head, version = self._connection, self._parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self._parser.get_method(), head.url, version)]
        for name, value in head.headers:
            if name != b"upgrade":  # alone what is left of the offer means nothing
                lines.append(b"%s: %s" % (name, value))
        return b"\r\n".join([*lines, b"", b""])
