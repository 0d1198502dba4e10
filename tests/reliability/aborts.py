"""Clients that leave, at any moment, in any way: nothing of them may stay.

They are written on plain sockets. A client leaves half way through its request, as soon as it has
asked, a moment later, or when the answer begins; by a reset or by closing its side.
"""

import asyncio
import itertools
import json
import random
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import uvloop

from bench.goal import Goal, judge
from bench.target import Target
from tests.reliability.held import Held, metrics, series, settled
from tests.reliability.record import Found
from tests.reliability.work import INK, TEXT, Work, ask, connect

AT_ONCE = 64
_MOST_GROWTH_MB = 20.0
_WARM_UP = 640
_LONGEST_S = 0.05  # of the moment later
_PATIENCE_S = 30.0
_LONG = 400  # bytes: half of 64 have to wait for a slot
_SEEDS = range(4)
Way = Literal["streamed", "whole", "socket"]
Moment = Literal["half asked", "asked", "a moment later", "answered"]
End = Literal["reset", "closed"]
WAYS: tuple[Way, ...] = ("streamed", "whole", "socket")
MOMENTS: tuple[Moment, ...] = ("half asked", "asked", "a moment later", "answered")
ENDS: tuple[End, ...] = ("reset", "closed")


@dataclass(frozen=True, slots=True)
class Leaver:
    """A client, and how it leaves."""

    work: Work
    way: Way
    moment: Moment
    end: End
    seed: int


@dataclass(frozen=True, slots=True)
class AbortRow:
    """What the service held before and after; `refused` were told to come later and left then.

    `aborted` is how many jobs it counts as such: whoever leaves before it has asked has none.
    """

    clients: int
    moments: dict[str, int]
    refused: int
    aborted: int
    before: Held
    after: Held
    wrong_answers: int


def measure(service: Target, clients: int, patience_s: float = _PATIENCE_S) -> Iterator[Found]:
    """Let so many leave, and judge what stays so long; a few leave before, so that all is warm."""
    expected = uvloop.run(_answers(service))
    uvloop.run(_let_leave(service, min(_WARM_UP, clients)))
    before, aborted = settled(service), _aborted(service)
    refused = uvloop.run(_let_leave(service, clients))
    after = settled(
        service,
        lambda h: h.idle and h.threads <= before.threads and h.files <= before.files,
        patience_s,
    )
    moments = Counter(leaver.moment for leaver in _leavers(clients))
    wrong = sum(a != b for a, b in zip(expected, uvloop.run(_answers(service)), strict=True))
    row = AbortRow(
        clients, dict(moments), refused, _aborted(service) - aborted, before, after, wrong
    )
    yield "aborts", row
    yield from goals(row)


def goals(row: AbortRow) -> Iterator[Goal]:
    """What may stay of them."""
    before, after = row.before, row.after
    yield judge(
        "slots and places in the queue", "none", "at most", 0, after.running + after.waiting
    )
    yield judge("more threads", "none", "at most", 0, after.threads - before.threads)
    yield judge("more files and sockets", "none", "at most", 0, after.files - before.files)
    growth = after.resident_mb - before.resident_mb
    yield judge("more memory", "20 MB", "at most", _MOST_GROWTH_MB, growth, unit="MB")
    yield judge("answers that differ afterwards", "none", "at most", 0, row.wrong_answers)


def _leavers(clients: int) -> Iterator[Leaver]:
    """Every way by turns."""
    ways = itertools.cycle(itertools.product((TEXT, INK), WAYS, MOMENTS, ENDS))
    for seed, way in zip(range(clients), ways, strict=False):
        yield Leaver(*way, seed)


async def _answers(service: Target) -> list[Any]:
    async with connect() as session:
        asked = [ask(session, service.url(""), w, s) for w in (TEXT, INK) for s in _SEEDS]
        replies = await asyncio.gather(*asked)
    if not all(reply.content for reply in replies):
        raise RuntimeError(f"the service answers {[reply.status for reply in replies]}")
    return [reply.content for reply in replies]


async def _let_leave(service: Target, clients: int) -> int:
    """How many of them were refused."""
    coming = _leavers(clients)
    chance = random.Random(clients)

    async def some() -> int:
        return sum([await _leave(service.port, leaver, chance) for leaver in coming])

    return sum(await asyncio.gather(*(some() for _ in range(AT_ONCE))))


async def _leave(port: int, leaver: Leaver, chance: random.Random) -> bool:
    """Whether it was refused; what the service does to it otherwise is its own affair."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seen = b""
    with suppress(OSError, asyncio.IncompleteReadError):
        async with asyncio.timeout(_PATIENCE_S):
            seen = await _ask(reader, writer, leaver)
            if leaver.moment == "a moment later":
                await asyncio.sleep(chance.uniform(0, _LONGEST_S))
            if leaver.end == "closed":
                writer.write_eof()
                while await reader.read(65536):
                    pass
    if leaver.end == "reset":
        option = socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(*option)
        writer.transport.abort()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return seen.startswith(b"HTTP/1.1 503 ")


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, leaver: Leaver) -> bytes:
    """Say as much as it says, and what it has seen of the answer."""
    asked = _upgrade() if leaver.way == "socket" else _request(leaver)
    if leaver.moment == "half asked":
        writer.write(asked[: len(asked) // 2])
        return b""
    writer.write(asked)
    begins = {"streamed": b"data: ", "whole": b"\r\n\r\n", "socket": b'"system_fingerprint"'}
    if leaver.way == "socket":
        await reader.readuntil(b"\r\n\r\n")  # nothing may be said before
        writer.writelines(_messages(leaver))
    seen = b""
    while leaver.moment == "answered" and begins[leaver.way] not in seen:
        if not (more := await reader.read(65536)):
            break
        seen += more
    return seen


def _request(leaver: Leaver) -> bytes:
    more = {"max_tokens": _LONG} if leaver.work is TEXT else {}
    asked = leaver.work.asked(leaver.seed, stream=leaver.way == "streamed") | more
    body = json.dumps(asked).encode()
    head = (
        f"POST {leaver.work.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _upgrade() -> bytes:
    return (
        b"GET /v1/online HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )


def _messages(leaver: Leaver) -> list[bytes]:
    opening = {"model": leaver.work.model, "seed": leaver.seed}
    opening |= {} if leaver.work is TEXT else {"text": leaver.work.body["text"]}
    return [_frame(opening), _frame({"write": _LONG})]


def _frame(message: dict[str, Any]) -> bytes:
    """A text frame, masked with zeros."""
    payload = json.dumps(message).encode()
    assert len(payload) < 126
    return bytes([0x81, 0x80 | len(payload), 0, 0, 0, 0]) + payload


def _aborted(service: Target) -> int:
    return int(series(metrics(service), "requests_finished_total", 'reason="abort"'))
