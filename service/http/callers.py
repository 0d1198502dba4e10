"""Who asks, and how much of it: API keys with limits, or the address where there are none."""

import math
import threading
import time
from dataclasses import dataclass
from functools import partial

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine import terms
from service.errors import TooManyRequests, Unauthorized
from service.http import record
from service.http.addresses import address_of
from service.http.errors import refuse
from service.http.guard import PROBES, is_loopback
from service.http.keys import Key, Keys

# Browsers cannot give a WebSocket a header; they can offer these subprotocols, which nobody logs.
SUBPROTOCOL = "evenkeel"
_KEY_PROTOCOL = "bearer."
# What needs no key: probes, the page, and the document's own page; /openapi.json is not of them.
_OPEN_PATHS = {*PROBES, "/", "/docs"}
_OPEN_FOLDERS = ("/static/", "/docs/")
# By any of these a proxy says that it is one; some say no more than the name they were asked by.
# nginx says nothing unless it is told to, but before 1.29.7 it asks by HTTP/1.0 then.
_FORWARDED = {
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks: the name of a key, or `address:` and where it comes from."""

    id: str
    admin: bool


class Account:
    """What a key has under way and has used up.

    Bytes are a bucket that holds a minute's worth and fills evenly. They are taken out when they
    have been read and written, so it may go below zero: by as much as the requests that are under
    way at once may take, never more. Nothing is let in until it is above zero again. What a thread
    beside the event loop has read is charged there.
    """

    def __init__(self, name: str, key: Key) -> None:
        self._name = name
        self._running = 0
        self._lock = threading.Lock()  # of the two below
        self._left_bytes = float(key.bytes_per_minute or 0)
        self._filled_s = time.monotonic()
        self.key = key

    @property
    def caller(self) -> Caller:
        return Caller(self._name, self.key.admin)

    def enter(self) -> None:
        """Begin a request, which has to `leave`. Raises `TooManyRequests`."""
        most = self.key.concurrency
        if most is not None and self._running >= most:
            raise TooManyRequests(f"this key has {self._running} requests under way, of {most}")
        self.check()
        self._running += 1

    def leave(self) -> None:
        """End a request."""
        self._running -= 1

    def renew(self, key: Key) -> None:
        """Take the key as its file has it now. Another limit begins with a minute's worth."""
        if key.bytes_per_minute != self.key.bytes_per_minute:
            with self._lock:
                self._left_bytes = float(key.bytes_per_minute or 0)
                self._filled_s = time.monotonic()
        self.key = key

    def charge(self, count: int) -> None:
        """Take bytes out that were read or written."""
        if self.key.bytes_per_minute is not None:
            with self._lock:
                self._left_bytes -= count

    def check(self) -> None:
        """Raises `TooManyRequests` if no bytes are left; it says when there will be."""
        rate = self.key.bytes_per_minute
        if rate is None:
            return
        with self._lock:
            now_s = time.monotonic()
            filled = self._left_bytes + (now_s - self._filled_s) * rate / 60
            left = self._left_bytes = min(filled, float(rate))
            self._filled_s = now_s
        if left <= 0:
            error = TooManyRequests(f"this key has used up its {rate} bytes a minute")
            error.retry_after_s = math.ceil((1 - left) * 60 / rate)
            raise error


class Callers:
    """Puts a `Caller` into the state of each request, and refuses those without a key if there
    are any. Without, `local` makes administrators of those on this machine."""

    def __init__(
        self, app: ASGIApp, keys: Keys | None, *, local: bool, deadline_s: float = math.inf
    ) -> None:
        self._app, self._keys, self._local, self._deadline_s = app, keys, local, deadline_s
        self._accounts: dict[str, Account] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if SUBPROTOCOL in scope.get("subprotocols", ()):
            send = _speaking(send)
        state = scope.setdefault("state", {})
        if self._keys is None or is_open(scope["path"]):
            state["caller"] = self._by_address(scope)
            terms.agree(self._deadline_s, state["caller"].id)
            await self._app(scope, receive, send)
            return
        try:
            known = partial(self._known, self._keys, scope)
            account = known()
            state["caller"], state["known"] = account.caller, known
            account.enter()
        except (Unauthorized, TooManyRequests) as error:
            await refuse(error, scope, receive, send)
            return
        record.current().charge = account.charge
        terms.agree(self._deadline_s, account.caller.id)
        try:
            await self._app(scope, receive, send)
        finally:
            account.leave()

    def _known(self, keys: Keys, scope: Scope) -> Account:
        presented = _presented(scope)
        found = keys.find(presented)
        if found is None and presented:
            raise Unauthorized("this API key is not known here, or no longer")
        if found is None:
            raise Unauthorized("this service wants an API key: Authorization: Bearer KEY")
        name, key = found
        account = self._accounts.setdefault(name, Account(name, key))
        account.renew(key)
        return account

    def _by_address(self, scope: Scope) -> Caller:
        host = (scope.get("client") or ("",))[0]
        # Behind a proxy of this machine everybody would look local.
        old = scope.get("http_version") == "1.0"
        direct = not old and _FORWARDED.isdisjoint(Headers(scope=scope).keys())
        admin = self._keys is None and self._local and is_loopback(host) and direct
        return Caller(address_of(scope.get("client")), admin)


def is_open(path: str) -> bool:
    """Whether a path is answered without a key where keys are asked for."""
    return path in _OPEN_PATHS or path.startswith(_OPEN_FOLDERS)


def _presented(scope: Scope) -> str:
    kind, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return key.strip()
    offered = (p for p in scope.get("subprotocols", ()) if p.startswith(_KEY_PROTOCOL))
    return str(next(offered, "")).removeprefix(_KEY_PROTOCOL)


def _speaking(send: Send) -> Send:
    """Browsers hang up unless one of their subprotocols is taken."""

    async def named(message: Message) -> None:
        if message["type"] == "websocket.accept":
            message["subprotocol"] = SUBPROTOCOL
        await send(message)

    return named
