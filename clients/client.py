"""A client whose streams outlive what they come from: cut connections, deadlines, `kill -9` and
rolling updates.

    with Client(["http://one:8000", "http://two:8000"]) as client:
        for event in client.complete(model="shakespeare", prompt="ROMEO:", max_tokens=300):
            print(event["choices"][0]["text"], end="")
"""

import json
import math
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import httpx
from httpx_sse import EventSource

from clients.arrived import Arrived, Event
from clients.errors import Refused, check
from clients.replicas import Replicas, begin_again

# The service closes a connection after 5 s without a request, whatever is on its way just then.
_KEPT_SHORTLY = httpx.Limits(keepalive_expiry=3)
# A prompt is read before anything comes: a byte a step, by turns with others where there are many.
_READ_PER_S = 500
# A proxy that compresses would hold events back until there is enough of them to compress.
_AS_IT_IS = {"Accept-Encoding": "identity"}
# A proxy that the environment names is not used for the loopback interface: it has one of its own.
_HERE = ("127.0.0.1", "localhost", "::1")
_NO_PROXY = dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]"))
# Environment variables that name files of TLS, and those that name proxies.
_OF_TLS = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
_OF_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
# Said in the place of what may have a part of a password in it.
ABOUT_USERS = (
    "with a user an address is like http://user:password@host; in a password / ? # , are "
    "%2F %3F %23 %2C, and in a path @ is %40"
)


class Client:
    """Asks replicas of one service, each in its turn when the one before fails, until nothing has
    come for `patience_s`. A connection on which nothing comes for `timeout_s`, and as long as a
    prompt may take to be read, has failed. Raises `Refused`, or `httpx.TransportError` where nobody
    answers; at once `ValueError`, or `httpx.InvalidURL`, for addresses, times, a key or variables
    of the environment with which nothing can be asked. A stream with `logprobs` is a `ValueError`
    when its first event is wanted."""

    def __init__(
        self, urls: Sequence[str], api_key: str | None = None, *,
        patience_s: float = 30, timeout_s: float = 30,
    ) -> None:  # fmt: skip
        if isinstance(urls, str) or not urls:
            raise ValueError("urls are those of the replicas, a list of one or more")
        if not patience_s >= 0:
            raise ValueError(f"patience_s is {patience_s}; it must be 0 or more")
        if not 0 < timeout_s < math.inf:
            raise ValueError(f"timeout_s is {timeout_s}; it must be above 0, and finite")
        urls = [_address(url) for url in urls]
        self._replicas = Replicas(urls, patience_s)
        self._timeout_s = timeout_s
        key = _checked(api_key or "")
        if key and any(httpx.URL(url).userinfo for url in urls):
            raise ValueError("an address with a user in it leaves no place for an API key")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = _http(urls, headers=headers, timeout=timeout_s, limits=_KEPT_SHORTLY)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def complete(self, **body: Any) -> Iterator[Event]:
        """The events of a streamed `POST /v1/completions`, as if it had never been cut."""
        return self._stream("/v1/completions", body)

    def write(self, **body: Any) -> Iterator[Event]:
        """The same of `POST /v1/handwriting`."""
        return self._stream("/v1/handwriting", body)

    def read(self, **body: Any) -> dict[str, Any]:
        """The answer of `POST /v1/read`: what ink says."""
        return dict(self.ask("POST", "/v1/read", body).json())

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """A whole answer."""
        for attempt, url in self._replicas.attempts():
            with attempt, _intact():
                response = self._http.request(method, url + path, json=body)
                check(response)
        return response

    def models(self) -> list[dict[str, Any]]:
        """What is served, as `/v1/models` tells it. Raises `Refused` where another service does."""
        told = self.ask("GET", "/v1/models").json()
        listed = told.get("data") if isinstance(told, dict) else None
        if not isinstance(listed, list) or not all(map(_is_model, listed)):
            raise Refused("what answers there is not Evenkeel")
        return listed

    def _stream(self, path: str, body: dict[str, Any]) -> Iterator[Event]:
        asked = {name: value for name, value in body.items() if value is not None}
        # With a seed of ours, a stream that is cut before its first event comes again the same.
        seed = {} if "state" in asked else {"seed": secrets.randbits(53)}
        arrived = Arrived(seed | asked | {"stream": True})
        for attempt, url in self._replicas.attempts():
            with attempt, _intact():
                for event in self._events(url + path, arrived.request()):
                    if (new := arrived.new(event)) is not None:
                        begin_again(attempt)
                        yield new
                if not arrived.ended:
                    raise httpx.RemoteProtocolError("the stream ended before its answer")

    def _events(self, url: str, body: dict[str, Any]) -> Iterator[Event]:
        read_s = len(json.dumps(body.get("prompt", ""))) / _READ_PER_S
        timeout = httpx.Timeout(self._timeout_s, read=self._timeout_s + read_s)
        asked = self._http.stream("POST", url, json=body, headers=_AS_IT_IS, timeout=timeout)
        with asked as response:
            check(response)
            response.encoding = "utf-8-sig"  # as events are, whatever a proxy says or puts before
            for sent in EventSource(response).iter_sse():
                if sent.data == "[DONE]":
                    return
                if sent.data:  # else it is there to keep the connection open
                    yield json.loads(sent.data)
        raise httpx.RemoteProtocolError("the stream ended before [DONE]")


@contextmanager
def _intact() -> Iterator[None]:
    """Turn what comes of a body that cannot be unpacked, or of an event that is no JSON, into a
    `RemoteProtocolError`, after which another try is made: it was damaged on the way, as by a proxy
    that ends it with a page of its own."""
    try:
        yield
    except (httpx.DecodingError, json.JSONDecodeError) as error:
        raise httpx.RemoteProtocolError(f"damaged on the way: {error}") from error


def _http(urls: Sequence[str], *, limits: httpx.Limits, **options: Any) -> httpx.Client:
    """Of these addresses. Raises a `ValueError` that names the variables of the environment by
    which there can be none: what is in them is made ready whatever is asked."""
    try:
        # With a transport of its own it makes no proxies: those for elsewhere cannot be in the way.
        here = all(httpx.URL(url).host in _HERE for url in urls)
        own = httpx.HTTPTransport(limits=limits) if here else None
        return httpx.Client(transport=own, mounts=_NO_PROXY, limits=limits, **options)
    except OSError as error:
        told = " and ".join(f"{n}={os.environ[n]}" for n in _OF_TLS if n in os.environ)
        raise ValueError(f"TLS cannot be had with {told}: {error}") from error
    except (httpx.InvalidURL, ValueError, ImportError) as error:  # a proxy may have a password
        proxies = {n: value for n, value in os.environ.items() if n.upper() in _OF_PROXIES}
        hidden = isinstance(error, httpx.InvalidURL) and any("@" in p for p in proxies.values())
        reason = ABOUT_USERS if hidden else re.sub("//.*@", "//", str(error))
        raise ValueError(f"no proxies can be had from {' and '.join(proxies)}: {reason}") from error


def _is_model(listed: Any) -> bool:
    return isinstance(listed, dict) and {"id", "kind"} <= listed.keys()


def _address(url: str) -> str:
    """An address without a slash at its end, as a path follows. Raises `httpx.InvalidURL`, or
    `ValueError` for what no request can be made to: a resolver would cut a port to 16 bits."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        if "@" not in url:
            raise
        raise httpx.InvalidURL(ABOUT_USERS) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        shown = url.rpartition("@")[2]
        raise ValueError(f"{shown!r} is no address: it begins with http:// or https://")
    if b"@" in parsed.raw_path:  # of a password that begins like a port
        raise httpx.InvalidURL(ABOUT_USERS)
    host, port = parsed.raw_host.decode(), parsed.port
    try:
        host.encode("idna")  # as a socket does when it is asked, of no more than 63 between dots
    except UnicodeError as error:
        raise ValueError(f"{host!r} is no name of a machine: {error}") from error
    if port is not None and not 0 < port <= 65_535:
        raise ValueError(f"{port} is no port of an address: 1 to 65535")
    if {"?", "#"} & set(url):
        raise ValueError("an address that has a ? or # leaves no place for a path")
    return url.rstrip("/")


def _checked(api_key: str) -> str:
    """A key without the line end of the file it was read from. Raises a `ValueError`, which does
    not tell the key, for characters that no header can have."""
    key = api_key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("the API key has other characters than printable ASCII")
    return key
