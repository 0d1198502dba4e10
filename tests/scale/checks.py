"""What a caller may count on, whichever fleet: each check says what came of it, and every goal is
that nothing is lost and nothing is wrong."""

import asyncio
import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import psutil
from websockets.sync.client import connect as open_socket

from bench.goal import judge
from bench.rows import OK
from bench.target import MODEL, PROMPT
from clients.client import Client
from tests.reliability.held import metrics, series
from tests.reliability.reader import Reader
from tests.reliability.record import Found
from tests.reliability.work import LEFT, TEXT, Work, ask, connect, content_of
from tests.scale.fleets import Fleet
from tests.scale.waiting import wait_for

_SHORT = Work("short", MODEL, "/v1/completions", {"prompt": PROMPT, "max_tokens": 32})
_LONG = {"model": MODEL, "prompt": PROMPT, "max_tokens": 30_000, "seed": 5}
_SEEDS = 20  # so many answers are known
_PATIENCE_S = 30.0  # a router may hold what it knew of a replica for so long
# When the first series of a process was made, to the microsecond: no two have the same.
_MADE = re.compile(r"^evenkeel_\w+_created(?:{.*})? (\S+)$", re.M)


def killed(fleet: Fleet) -> Iterator[Found]:
    """A text begun on one replica, which gets `kill -9`, is ended by another."""
    url = fleet.target.url("")
    expected = "".join(content_of(Client([url]).complete(**_LONG)))
    asked: list[dict[str, Any]] = []
    client = Client([url], patience_s=60)
    client._http.event_hooks["request"] = [lambda r: asked.append(json.loads(r.content))]
    stream, events = client.complete(**_LONG), []
    while len("".join(content_of(events))) < 2000:  # there has been a token to go on from
        events.append(next(stream))
    busy = max(fleet.pids(), key=_busy)
    os.kill(busy, signal.SIGKILL)
    events += stream
    fleet.mend()
    got = "".join(content_of(events))
    row = {"bytes": len(got), "requests": len(asked), "goes_on": bool(asked[-1].get("state"))}
    yield "killed", row
    yield judge("killed: requests it took", "one that was cut", "at least", 2, len(asked))
    yield judge("killed: bytes that are lost or wrong", "none", "at most", 0, _wrong(got, expected))
    yield judge("killed: went on from a token", "yes", "at least", 1, int(row["goes_on"]))


def many(fleet: Fleet, requests: int, clients: int = 16) -> Iterator[Found]:
    """Requests, none of which is asked again, over all replicas."""
    began_s = time.monotonic()
    lost, wrong = asyncio.run(_ask_all(fleet.target.url(""), requests, clients))
    took_s = round(time.monotonic() - began_s, 1)
    written = [int(count) for count in _each(fleet, "generation_tokens_total")]
    row = {
        "requests": requests, "clients": clients, "lost": lost, "wrong": wrong,
        "seconds": took_s, "bytes_by_replica": written,
    }  # fmt: skip
    yield "many", row
    yield judge("many: requests lost", "none", "at most", 0, sum(lost.values()))
    yield judge("many: answers with a wrong byte", "none", "at most", 0, wrong)
    yield judge("many: replicas that answered", "all", "at least", len(fleet.pids()),
                sum(n > 0 for n in written))  # fmt: skip


async def _ask_all(url: str, requests: int, clients: int) -> tuple[dict[str, int], int]:
    lost: Counter[str] = Counter()
    wrong = 0
    left = iter(range(requests))
    async with connect() as session:
        known = [(await ask(session, url, _SHORT, seed)).content for seed in range(_SEEDS)]
        assert all(known)

        async def client() -> None:
            nonlocal wrong
            for number in left:
                seed = number % _SEEDS
                reply = await ask(session, url, _SHORT, seed)
                lost[reply.status] += reply.status != OK
                wrong += reply.status == OK and reply.content != known[seed]

        await asyncio.gather(*(client() for _ in range(clients)))
    return {status: n for status, n in lost.items() if n}, wrong


def rolled(fleet: Fleet, length: int = 1500) -> Iterator[Found]:
    """Every replica is replaced while clients stream that go on, and others that do not."""
    over = threading.Event()
    plain: list[str] = []
    url = fleet.target.url("")
    threads = [threading.Thread(target=_ask_until, args=(url, over, plain)) for _ in range(3)]
    before = set(fleet.pids())
    with ExitStack() as stack:
        readers = [stack.enter_context(Reader(url, seed, length)) for seed in (0, 2)]
        for reader in readers:
            reader.learn()
        for thread in threads:
            thread.start()
        began_s = time.monotonic()
        fleet.roll()
        row: dict[str, Any] = {"seconds": round(time.monotonic() - began_s, 1)}
        over.set()
        for thread in threads:
            thread.join()
        for reader in readers:
            reader.end()
    lost = Counter(status for status in plain if status != OK)
    row |= {
        "replaced": len(before - set(fleet.pids())), "requests": len(plain), "lost": dict(lost),
        "streams": sum(reader.streams for reader in readers),
        "streams_lost": [why for reader in readers for why in reader.lost],
        "streams_wrong": sum(reader.wrong for reader in readers),
    }  # fmt: skip
    yield "rolled", row
    yield judge("rolled: replicas replaced", "all", "at least", len(before), row["replaced"])
    yield judge("rolled: requests lost", "none", "at most", 0, lost.total())
    yield judge("rolled: streams lost", "none", "at most", 0, len(row["streams_lost"]))
    yield judge("rolled: streams that differ", "none", "at most", 0, row["streams_wrong"])


def _ask_until(url: str, over: threading.Event, statuses: list[str]) -> None:
    """Whole answers, one after the other, none of them asked for again."""
    with httpx.Client(timeout=60, trust_env=False) as client:
        while not over.is_set():
            body = _SHORT.asked(random.randrange(_SEEDS), stream=False)
            try:
                statuses.append(str(client.post(url + _SHORT.path, json=body).status_code))
            except httpx.TransportError as error:
                statuses.append(type(error).__name__)


def left(fleet: Fleet, clients: int = 20) -> Iterator[Found]:
    """Clients that leave, one after the other, give their slots back."""
    url = fleet.target.url("")
    work = Work("long", MODEL, TEXT.path, {"prompt": PROMPT, "max_tokens": 60_000})

    async def leave() -> list[str]:
        async with connect() as session:
            asked = [await ask(session, url, work, n, leaves=True) for n in range(clients)]
            return [reply.status for reply in asked]

    ended = Counter(asyncio.run(leave()))
    began_s = time.monotonic()
    wait_for("slots given back", lambda: not any(_each(fleet, "requests_running")))
    took_s = round(time.monotonic() - began_s, 2)
    yield "left", {"clients": clients, "ended": dict(ended), "seconds": took_s}
    yield judge("left: clients that left", "all", "at least", clients, ended[LEFT])
    yield judge("left: seconds until no slot is held", "five", "at most", 5.0, took_s)


def streamed(fleet: Fleet) -> Iterator[Found]:
    """Events arrive as they are written, not when the answer is whole."""
    with httpx.Client(timeout=60, trust_env=False) as client:
        began_s = time.monotonic()
        body = _LONG | {"max_tokens": 4000, "stream": True}
        times = []
        with client.stream("POST", fleet.target.url(TEXT.path), json=body) as response:
            for line in response.iter_lines():
                if line.startswith("data: {"):
                    times.append(time.monotonic() - began_s)
    share = times[0] / times[-1]
    moments = len({round(moment, 3) for moment in times})
    yield "streamed", {"events": len(times), "moments": moments, "first_share": round(share, 4)}
    yield judge("streamed: share of the time to the first event", "of 1", "at most", 0.2, share)
    yield judge("streamed: moments something came at", "4,000 bytes", "at least", 50, moments)


def session(fleet: Fleet) -> Iterator[Found]:
    """A session of `/v1/online` goes on from its token in others, at whichever replica."""
    url = f"ws://127.0.0.1:{fleet.target.port}/v1/online"
    with open_socket(url, proxy=None) as socket:
        _say(socket, model=MODEL, seed=4)
        _say(socket, write=20)
        token = _say(socket, state=True)["state"]
        expected = _say(socket, write=50)["bytes"]
    same = 0
    for _ in range(8):
        with open_socket(url, proxy=None) as socket:
            _say(socket, model=MODEL, state=token)
            same += _say(socket, write=50)["bytes"] == expected
    yield "session", {"sessions": 8, "same": same}
    yield judge("session: sessions that go on the same", "all", "at least", 8, same)


def _say(socket: Any, **message: Any) -> dict[str, Any]:
    socket.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(socket.recv(timeout=30))
    return answer


def _busy(pid: int) -> float:
    """How busy a process is: whoever writes is."""
    return float(psutil.Process(pid).cpu_percent(0.3))


def _wrong(got: str, expected: str) -> int:
    same = sum(a == b for a, b in zip(got, expected, strict=False))
    return max(len(got), len(expected)) - same


def _each(fleet: Fleet, name: str) -> list[float]:
    """A series of each replica, as they have their turns."""
    wanted, end_s = len(fleet.pids()), time.monotonic() + _PATIENCE_S
    found: dict[str, float] = {}
    while len(found) < wanted and time.monotonic() < end_s:
        page = metrics(fleet.target)
        found[_MADE.findall(page)[0]] = series(page, name)
        time.sleep(0.05)
    return list(found.values())
