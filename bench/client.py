"""One completion over HTTP, and when each part of its answer arrived.

By aiohttp, though driver and server share the machine. With 32 clients in a closed loop it took
0.3 ms of the processor for a whole answer and 0.7 for a streamed one, a protocol written by hand on
httptools 0.1 and 0.4, httpx 2.1 and 3.2: at 100 streams a second 0.07, 0.04 and 0.32 of two cores.
In six turns each of 6 s the service streamed 9.3 kB/s to aiohttp and 9.2 to the one by hand.
"""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from bench.rows import OK
from bench.target import Target

_HEADERS = {"Content-Type": "application/json"}
_DATA = b"data:"
_DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Answer:
    """`events` are (clock seconds when it was there, text); a whole answer is one, and any other
    status than 200 has none."""

    status: str
    first_s: float
    ended_s: float
    events: list[tuple[float, str]]

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(text for _, text in self.events)


def connect(connections: int = 0, patience_s: float | None = None) -> ClientSession:
    """A pool of keep-alive connections, 0 for as many as are wanted; whoever waits longer, for one
    of them or for an answer, gets a `TimeoutError`."""
    return ClientSession(
        connector=TCPConnector(limit=connections), timeout=ClientTimeout(total=patience_s)
    )


async def ask(
    session: ClientSession, target: Target, size: int, seed: int, *, streamed: bool
) -> Answer:
    """One completion. Raises what aiohttp does, and `ValueError` for a stream that broke off."""
    body = target.body(size, seed, stream=streamed)
    async with session.post(target.url(), data=body, headers=_HEADERS) as response:
        chunks = [(time.perf_counter(), c) async for c in response.content.iter_any()]
    ended_s = chunks[-1][0] if chunks else time.perf_counter()
    first_s, status = chunks[0][0] if chunks else ended_s, str(response.status)
    if status != OK:
        return Answer(status, first_s, ended_s, [])
    if streamed:
        events = list(_events(chunks))
        return Answer(status, events[0][0], ended_s, events)
    whole = target.text(b"".join(chunk for _, chunk in chunks))
    return Answer(status, first_s, ended_s, [(ended_s, whole)])


def _events(chunks: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, str]]:
    """Of server-sent events, when each was complete and its text; not the closing `[DONE]`.

    Raises `ValueError` if there are none, if they are not closed by `[DONE]`, or for an error.
    """
    rest, closed, found = b"", False, 0
    for moment_s, chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n\n")
        for event in complete:
            lines = [line for line in event.split(b"\n") if line.startswith(_DATA)]
            data = b"\n".join(line.removeprefix(_DATA) for line in lines).strip()
            if data == _DONE:
                closed = True
            elif data and (text := _text(json.loads(data))):  # else it is a comment
                found += 1
                yield moment_s, text
    if not (closed and found):
        raise ValueError("the stream broke off or was empty")


def _text(event: dict[str, object]) -> str:
    """The text of an event of this service or a peer. Raises `ValueError` for an error event."""
    match event:
        case {"choices": [{"text": str(text)}]} | {"text": str(text)}:
            return text
        case {"choices": []}:
            return ""
    raise ValueError(f"the stream holds {json.dumps(event)[:200]}")
