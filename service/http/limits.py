"""What a request's body may not exceed, in size and in time, refused while it arrives; and that it
comes as it is.
"""

import asyncio
import math

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import BodyTooLarge, CodedBody, NotReady, RequestTimeout
from service.http.errors import refuse
from service.http.waits import cut_short, turns

_MOST_DIGITS = 20  # of a length that is one
_MOST_OF_CODING = 60  # characters that are told of one
# What a body in these words of a header need not be decoded from: chunks are of the connection.
_AS_IT_IS = {
    "content-encoding": ("", "identity"),
    "transfer-encoding": ("", "identity", "chunked"),
}
_LAST_BYTES_S = 1.0  # after the service was told to stop, for bodies on their way


class Bodies:
    """The bodies that requests are waiting for."""

    def __init__(self) -> None:
        self.ends_s = math.inf  # of the event loop's time
        self.waits: set[asyncio.Timeout] = set()

    def end(self) -> None:
        """Wait for bodies for a moment longer, and then no more: they would hold the stop up."""
        self.ends_s = asyncio.get_running_loop().time() + _LAST_BYTES_S
        cut_short(self.waits, self.ends_s)

    @property
    def ended(self) -> bool:
        """Whether the service is stopping."""
        return self.ends_s < math.inf


class BodyLimit:
    """Refuses a body over the limit, by its declared length or while it arrives, one that has not
    arrived `timeout_s` after it was asked for, and one that would have to be decoded."""

    def __init__(self, app: ASGIApp, max_body_bytes: int, timeout_s: float, bodies: Bodies) -> None:
        self._app = app
        self._limit, self._timeout_s = max_body_bytes, timeout_s
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        # Of digits without end Python makes no number.
        if declared.isdigit() and (len(declared) > _MOST_DIGITS or int(declared) > self._limit):
            await refuse(BodyTooLarge(self._message()), scope, receive, send)
            return
        if coding := _coding(Headers(scope=scope)):
            told = f"the request body is in {coding[:_MOST_OF_CODING]}"
            await refuse(CodedBody(f"{told}; this service reads none"), scope, receive, send)
            return
        seen = 0
        due_s = asyncio.get_running_loop().time() + self._timeout_s
        whole = False

        # FastAPI makes a 400 of any other error than its own while it reads a body.
        async def limited() -> Message:
            nonlocal seen, whole
            if whole:  # what comes now is the end of the connection
                return await receive()
            waits = self._bodies.waits
            try:
                async with asyncio.timeout_at(min(due_s, self._bodies.ends_s)) as wait:
                    waits.add(wait)
                    try:
                        message = await receive()
                    finally:
                        waits.remove(wait)
            except TimeoutError:
                if self._bodies.ended:
                    raise HTTPException(NotReady.status, "the service is stopping") from None
                late = f"the request body took over {self._timeout_s} s to arrive"
                raise HTTPException(RequestTimeout.status, late) from None
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise HTTPException(BodyTooLarge.status, self._message())
            whole = not message.get("more_body", False)
            if whole and not turns().read_now(seen):
                return await _in_turn(message, seen, receive)
            return message

        await self._app(scope, limited, send)

    def _message(self) -> str:
        return f"the request body is over {self._limit} bytes"


async def _in_turn(message: Message, size: int, receive: Receive) -> Message:
    """The end of a body of so many bytes, when it is its turn to be read; that of the connection,
    if it comes first: there is no limit to how many send a body and leave."""
    turn = asyncio.create_task(turns().to_read(size))
    left = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({turn, left}, return_when=asyncio.FIRST_COMPLETED)
        return message if turn.done() else left.result()
    finally:
        turn.cancel()
        left.cancel()


def _coding(headers: Headers) -> str:
    """What a body has to be decoded from, whether or not it looks like it; empty for none."""
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return ""  # there is no body, whatever a client says of all it sends
    for header, own in _AS_IT_IS.items():
        named = ",".join(headers.getlist(header)).split(",")
        codings = (name.strip().lower() for name in named)
        if coded := ", ".join(name for name in codings if name not in own):
            return f"{header} {coded}"
    return ""
