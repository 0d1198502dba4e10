"""What became of each HTTP request and WebSocket session: it is counted once, logged as a line of
JSON, and has an id that its answer carries.
"""

import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine.jobs import Generation, Piece
from service.errors import ServiceError
from service.http.addresses import Client, address_of
from service.metrics import Metrics, Work

log = logging.getLogger("evenkeel.request")

ABORT = "abort"  # the client left
REFUSED = "refused"  # of a request's state: the error its connection answered in its place
CLIENT_CLOSED_REQUEST = 499  # nobody reads it; nginx's number for the log
_ACCEPTED = 101  # the status of a WebSocket that is open
_LOST = (1006, 1005)  # codes of a WebSocket that nobody closed
_CODES = range(1000, 1016)  # of the protocol; others are a client's own, which count as one
_OWN_CODE = 3000
_VALID_ID = re.compile(r"[!-~]{1,128}")
_ID_HEADER = b"x-request-id"
_NO_ROUTE = "other"
# Probes, scrapes and files: nobody reads a log for them, and a service that starts refuses nobody.
_ASKED_ALL_THE_TIME = {
    *("/livez", "/readyz", "/health", "/metrics"),
    *("/", "/docs", "/docs/ui", "/static", "/static/device"),
}
_MOST_PIECES = 128  # noted of a request; as many as a span has events
# Told one by one: as many as a request of text has. A page of which the best is drawn has 16,000.
MOST_JOBS = 128


@dataclass(slots=True)
class Record:
    """A request from its first byte to its last. Times are of `time.perf_counter`."""

    id: str
    method: str = ""
    path: str = ""  # of the route, with names in the place of what they stand for
    model: str = ""
    caller: str = ""
    status: int = 0
    error: str | None = None  # code of the first error, wherever it went, or `abort`
    parent: str | None = None  # traceparent of W3C
    works: list[Work] = field(default_factory=list)
    steps: int = 0  # of a session, of a line that is read
    pieces_s: list[float] = field(default_factory=list)
    began_ns: int = field(default_factory=time.time_ns)  # of the calendar
    began_s: float = field(default_factory=time.perf_counter)
    total_s: float = 0.0
    metrics: Metrics | None = None
    complete: bool = False  # all of the answer has been sent
    charge: Callable[[int], None] | None = None  # whoever asked, for what was read and written
    _working: dict[Generation[Any], str] = field(default_factory=dict)

    def begin(self, jobs: Sequence[Generation[Any]], model: str) -> None:
        """The engine of a model has accepted these jobs: each will be counted once, of that model,
        whichever the request asks meanwhile."""
        self._working |= dict.fromkeys(jobs, model)

    def take(self, job: Generation[Any], piece: Piece) -> None:
        """Note a piece of a job; perhaps its last."""
        if len(self.pieces_s) < _MOST_PIECES:
            self.pieces_s.append(time.perf_counter())
        if piece.error is not None:
            self.fail(piece.error)
            self._end(job, "error")
        elif piece.finish_reason is not None:
            self._end(job, piece.finish_reason)

    def fail(self, error: ServiceError | str) -> None:
        """Note an error that the caller is told; only the first is kept."""
        code = error if isinstance(error, str) else error.code or error.type
        self.error = self.error or code

    def pay(self, steps: int) -> None:
        """Count steps that are of none of the jobs, and charge them to the caller."""
        self.steps += steps
        if self.charge is not None:
            self.charge(steps)

    def end(self) -> None:
        """Close the record: whatever job still runs was given up."""
        for job in list(self._working):
            self._end(job, ABORT if self.error in (None, ABORT) else "error")
        self.total_s = time.perf_counter() - self.began_s

    def line(self) -> str:
        """As JSON, for the log."""
        return json.dumps({
            "time": iso_utc(self.began_ns / 1e9),
            "request": self.id,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "error": self.error,
            "caller": self.caller,
            "model": self.model,
            "prompt_tokens": sum(work.read for work in self.works),
            "completion_tokens": sum(work.written for work in self.works),
            "steps": self.steps,
            "finish": [work.reason for work in self.works[:MOST_JOBS]],
            "queue_s": self._first("first_run_s"),
            "first_byte_s": self._first("first_output_s"),
            "total_s": round(self.total_s, 6),
        })  # fmt: skip

    def _first(self, event: str) -> float | None:
        """When the first of the jobs got there, in seconds from the beginning."""
        times_s = [getattr(w, event) for w in self.works if getattr(w, event) is not None]
        return round(min(times_s) - self.began_s, 6) if times_s else None

    def _end(self, job: Generation[Any], reason: str) -> None:
        work = Work(
            self._working.pop(job, self.model),
            reason,
            job.read,
            job.written,
            job.arrived_s,
            job.first_run_s,
            job.first_output_s,
            time.perf_counter(),
        )
        self.works.append(work)
        if self.charge is not None:
            self.charge(work.read + work.written)
        if self.metrics is not None:
            self.metrics.count(work)


_current: ContextVar[Record] = ContextVar("record")


def iso_utc(at_s: float) -> str:
    """A time of the calendar as logs have it, with all digits even at a whole second."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="microseconds")


def current() -> Record:
    """That of the request being answered; outside of any, one that nobody reads."""
    return _current.get(None) or Record("")


class Recorder:
    """Records what the application inside does; `also` is told of each record that a log has
    or, where requests are not logged, would have."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, also: Callable[[Record], None] | None = None
    ) -> None:
        self._app, self._metrics, self._also = app, metrics, also

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        record = Record(_request_id(headers), scope.get("method", "WEBSOCKET"))
        record.metrics = self._metrics
        record.parent = headers.get("traceparent")
        scope.setdefault("state", {})["record"] = record
        _current.set(record)
        try:
            await self._app(scope, _watched(receive, record), _named(send, record))
        except Exception:
            record.fail(ServiceError.type)
            raise
        finally:
            self._end(record, scope)

    def refused(self, error: ServiceError, client: Client) -> None:
        """Something that was answered before there was a request to speak of."""
        record = Record(_new_id(), path=_NO_ROUTE, status=error.status, caller=address_of(client))
        record.fail(error)
        self._tell(record)

    def _end(self, record: Record, scope: Scope) -> None:
        if not record.complete:
            record.fail(ABORT)
        record.status = record.status or CLIENT_CLOSED_REQUEST
        if (error := scope["state"].get(REFUSED)) is not None:
            record.error, record.status = None, error.status
            record.fail(error)
        record.path, record.caller = record.path or _path(scope), _caller(scope)
        record.end()
        self._tell(record)

    def _tell(self, record: Record) -> None:
        self._metrics.ended.labels(record.path, record.status, record.error or "").inc()
        if record.path in _ASKED_ALL_THE_TIME:
            return
        if 400 <= record.status < 600 and record.error != ABORT:
            self._metrics.rejected.labels(record.status).inc()
        if log.isEnabledFor(logging.INFO):
            log.info(record.line())
        if self._also is not None:
            self._also(record)


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _VALID_ID.fullmatch(given) else _new_id()


def _new_id() -> str:
    return f"req-{secrets.token_hex(12)}"


def _watched(receive: Receive, record: Record) -> Receive:
    async def received() -> Message:
        message = await receive()
        if message["type"] == "http.disconnect" and not record.complete:
            record.fail(ABORT)
        elif message["type"] == "websocket.disconnect" and not record.complete:
            # A connection that was lost has no reason, whatever code the server makes up for it.
            lost = message["code"] in _LOST and "reason" not in message
            code = message["code"] if message["code"] in _CODES else _OWN_CODE
            record.status, record.complete = _LOST[0] if lost else code, not lost
        return message

    return received


def _named(send: Send, record: Record) -> Send:
    """With the id in the head of the answer."""

    async def sent(message: Message) -> None:
        kind = message["type"].removeprefix("websocket.http.")  # of a refused WebSocket
        kind = kind.removeprefix("http.")
        if kind in ("response.start", "websocket.accept"):
            name = (_ID_HEADER, record.id.encode())
            message["headers"] = [*message.get("headers", ()), name]
            if record.error != ABORT:  # or nobody hears of it
                record.status = message.get("status", _ACCEPTED)
        elif kind == "response.body":
            record.complete = not message.get("more_body", False)
        elif kind == "websocket.close":
            record.status, record.complete = message.get("code", 1000), True
        await send(message)

    return sent


def _path(scope: Scope) -> str:
    """The path of the route, which there are few of, whatever is asked for."""
    route = scope.get("route")
    if route is None and scope.get("root_path"):
        return str(scope["root_path"])  # a folder of files
    if route is None:  # refused before there was one
        routes = scope["app"].state.routes
        route = next((r for r in routes if r.matches(scope)[0] is not Match.NONE), None)
    return _NO_ROUTE if route is None else str(getattr(route, "path_format", route.path))


def _caller(scope: Scope) -> str:
    caller = scope["state"].get("caller")
    return address_of(scope.get("client")) if caller is None else str(caller.id)
