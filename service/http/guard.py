"""Who may ask, by the headers a browser cannot forge, and what a browser may do with an answer.

A page of another site must not use the service of whoever visits it: its `Origin` is not the host
that is asked. A name that was made to point here must not either: a service on the loopback
interface answers to the names of that alone.
"""

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Forbidden, InvalidRequest, ServiceError, shown
from service.http.addresses import kept
from service.http.errors import answer_to, refuse

PROBES = ("/livez", "/readyz")
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
# A name or an address, and perhaps a port (RFC 9110 §7.2); a URL made with anything else has a path
# of its own.
_HOST = re.compile(r"(\[[\w:.%~-]+\]|[\w.~!$&'()*+,;=%-]*)(:\d*)?", re.ASCII)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
POLICY = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self' ws: wss:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # Unless an answer says otherwise: what somebody wrote, or who has no key, is for nobody else.
    "Cache-Control": "no-store",
}
# Files are answered whole: the framework tells of a bad range in words of its own. And it takes
# apart all cookies, for every request, though nobody here gives any.
_UNHEARD = (b"range", b"cookie")
_LINES = [(name.lower().encode(), value.encode()) for name, value in POLICY.items()]


def hosts_of(address: str, named: Iterable[str]) -> frozenset[str]:
    """The host names answered to: those named, or those of the loopback interface for a service
    that listens there; empty for any."""
    chosen = frozenset(map(_as_compared, named))
    if chosen:
        return frozenset() if "*" in chosen else chosen
    return frozenset(_LOOPBACK) if is_loopback(address) else frozenset()


class Guard:
    """Refuses foreign hosts and origins, and says to browsers what answers are not for.

    `hosts` are names without a port, empty for any; `origins` may ask from elsewhere.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], origins: frozenset[str]) -> None:
        self._app, self._hosts, self._origins = app, hosts, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        error = self._refusal(scope)
        if error is None:
            scope["headers"] = [line for line in scope["headers"] if line[0] not in _UNHEARD]
            await self._app(scope, receive, _with_policy(send))
            return
        await refuse(error, scope, receive, _with_policy(send))

    def _refusal(self, scope: Scope) -> ServiceError | None:
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) > 1:  # a proxy may have gone by another than is read here
            return InvalidRequest("a request names one Host")
        host, origin = headers.get("host", ""), headers.get("origin")
        probes = scope["path"] in PROBES  # asked for by address, and they tell little
        if not probes and "host" not in headers and scope.get("http_version") != "1.0":
            return InvalidRequest("there is no header Host")
        if not (probes or _HOST.fullmatch(host)):
            return InvalidRequest(f"Host is {shown(host)}; it must be a name or an address")
        if self._hosts and not (probes or self._is_own(_name(host), scope)):
            return Forbidden(
                f"this service is not {shown(host)}; EVENKEEL_ALLOWED_HOSTS names hosts"
            )
        asks_only = scope["type"] == "http" and scope["method"] in _SAFE_METHODS
        if asks_only or origin is None or origin in self._origins:
            return None
        if _place(origin) == host.lower():
            return None
        return Forbidden(f"{shown(origin)} is another origin; EVENKEEL_ALLOWED_ORIGINS names some")

    def _is_own(self, name: str, scope: Scope) -> bool:
        """Whether it is one of the names, or the address where the connection came in: no name that
        was made to point here, and how one of several replicas is asked."""
        if name in self._hosts:
            return True
        server = scope.get("server")
        return server is not None and name == server[0] and _is_address(name)


class Friends(CORSMiddleware):
    """Lets pages of some other origins use the service."""

    def preflight_response(self, request_headers: Headers) -> Response:
        answer = super().preflight_response(request_headers)
        if answer.status_code == InvalidRequest.status:  # in words alone
            told = answer_to(InvalidRequest(bytes(answer.body).decode()))
            told.headers.update(_of_browsers(answer.headers))
            return told
        return answer


def _of_browsers(headers: Mapping[str, str]) -> dict[str, str]:
    """What is not about the body."""
    return {name: value for name, value in headers.items() if not name.startswith("content-")}


def _with_policy(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"].endswith("http.response.start"):  # that of a refused WebSocket too
            headers = [line for line in message.get("headers", ()) if line[0] != b"accept-ranges"]
            given = {name for name, _ in headers}
            message["headers"] = headers + [line for line in _LINES if line[0] not in given]
        await send(message)

    return guarded


def _place(origin: str) -> str | None:
    """Host and port of an Origin header."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _name(host: str) -> str:
    """A Host header without its port."""
    try:
        return _as_compared(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return ""


@kept
def _as_compared(name: str) -> str:
    """An address in its one spelling; a name without the dot that ends it in the whole tree of
    names, as in `localhost.`."""
    return str(ip_address(name)) if _is_address(name) else name.lower().removesuffix(".")


@kept
def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address."""
    if _is_address(address):
        found = ip_address(address)
        # An address of IPv4 in one of IPv6 is what it is by itself; so says Python since 3.13.
        return (getattr(found, "ipv4_mapped", None) or found).is_loopback
    return address.lower() == "localhost"


@kept
def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
