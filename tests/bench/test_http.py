"""The load driver against fake servers that are slow, stall, refuse or break off."""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import http
from bench.client import ask, connect
from bench.http import load, schedule
from bench.target import BYTES, IN_EIGHT_BITS, PEERS, SERVERS, SERVICE, Server, Target

_OK = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"text": "abc"}'
_REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
_STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_STEP_S = 0.02
# An open loop whose schedule holds one arrival, sent however late it is.
_ONE_REQUEST: dict[str, Any] = {"rate_per_s": 10, "seconds": 0.1, "warm_up_s": 0.0}

Answers = Callable[[asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def _server(answer: Answers, heard: list[bytes] | None = None) -> Iterator[Target]:
    """A server on a thread of its own that answers every request with `answer`; what was asked is
    `heard`."""
    bodies = [] if heard is None else heard
    loop = asyncio.new_event_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(w for w in head.split(b"\r\n") if w.startswith(b"Content-Length"))
                bodies.append(await reader.readexactly(int(length.split(b":")[1])))
                await answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield Target("fake", server.sockets[0].getsockname()[1])
    finally:
        asyncio.run_coroutine_threadsafe(_stop(server, tasks), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _stop(server: asyncio.Server, tasks: set["asyncio.Task[None]"]) -> None:
    server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _after_a_step(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(_STEP_S)
    writer.write(_OK)


async def _at_once(writer: asyncio.StreamWriter) -> None:
    writer.write(_OK)


async def _refuse(writer: asyncio.StreamWriter) -> None:
    writer.write(_REFUSED)


async def _turn_away(writer: asyncio.StreamWriter) -> None:
    writer.write(_REFUSED.replace(b"503 Service Unavailable", b"429 Too Many Requests"))


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


def _stream(*events: bytes) -> Answers:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(_STREAM)
        for event in events:
            await asyncio.sleep(_STEP_S)
            data = b"data: " + event + b"\n\n"
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        writer.write(b"0\r\n\r\n")

    return answer


def _one_at_a_time(seconds: float) -> Answers:
    """A server that takes so long for each request and has one pair of hands."""
    hands = asyncio.Lock()

    async def answer(writer: asyncio.StreamWriter) -> None:
        async with hands:
            await asyncio.sleep(seconds)
        writer.write(_OK)

    return answer


def test_the_schedule_is_decided_by_its_seed() -> None:
    """The same seed, the same arrivals; another seed, others."""
    assert schedule(100, 5, 1) == schedule(100, 5, 1)
    assert schedule(100, 5, 1) != schedule(100, 5, 2)


def test_arrivals_are_a_poisson_process_of_the_asked_rate() -> None:
    """Mean rate, and gaps as spread out as exponential ones: deviation equal to the mean."""
    moments = np.array(schedule(50, 400, 3))
    gaps = np.diff(moments, prepend=0.0)
    assert len(moments) == pytest.approx(50 * 400, rel=0.03)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)
    assert 0 < moments[0] < moments[-1] < 400


def test_an_open_loop_counts_the_wait_that_a_closed_one_omits() -> None:
    """A server of 50/s looks quick to one client that waits its turn. Asked 100 times a second, the
    last of half a second waits nearly as long again."""
    with _server(_one_at_a_time(_STEP_S)) as target:
        waiting = load(target, rate_per_s=100, seconds=0.5, warm_up_s=0.0)
        polite = [load(target, clients=1, seconds=0.1, warm_up_s=0.0).latency_ms for _ in range(2)]
    assert waiting.latency_ms is not None
    assert waiting.latency_ms.p99 > 400
    assert waiting.latency_ms.p50 > 200
    # The better of two: other work on the machine makes both loops wait.
    assert waiting.latency_ms.p50 > 4 * min(spread.p50 for spread in polite if spread)


def test_latency_counts_from_the_intended_time_where_connections_run_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Waiting for a free connection of the pool is latency too: the server is quick here."""
    monkeypatch.setattr(http, "MOST_CONNECTIONS", 1)
    with _server(_after_a_step) as target:
        row = load(target, rate_per_s=100, seconds=0.5, warm_up_s=0.0)
    assert row.latency_ms is not None
    assert row.latency_ms.p99 > 300


def test_the_first_byte_of_a_stream_is_its_first_event() -> None:
    """First byte after a step, the end after three, gaps of a step over the bytes they brought."""
    events = _stream(b'{"text": "abcd"}', b'{"text": "efghi"}', b"[DONE]")
    with _server(events) as target:
        row = load(target, clients=1, seconds=0.3, streamed=True, warm_up_s=0.0)
    assert row.errors == {}
    assert row.first_byte_ms is not None
    assert row.latency_ms is not None
    assert row.gap_ms_per_byte is not None
    assert row.latency_ms.p50 > row.first_byte_ms.p50 + 1.5 * _STEP_S * 1e3
    assert 0.8 * _STEP_S * 1e3 < 5 * row.gap_ms_per_byte.p50 < row.latency_ms.p99
    assert row.gap_ms_per_byte.samples == row.requests


@pytest.mark.parametrize(
    ("answer", "streamed", "error"),
    [
        (_refuse, False, "503"),
        (_turn_away, False, "429"),
        (_refuse, True, "503"),
        (_hang_up, False, "ServerDisconnectedError"),
        (_stream(b'{"text": "a"}'), True, "ValueError"),
        (_stream(b'{"error": {}}', b"[DONE]"), True, "ValueError"),
        (_stream(b"[DONE]"), True, "ValueError"),
    ],
    ids=[
        "refused",
        "turned away",
        "stream refused",
        "hung up",
        "broken off",
        "error event",
        "empty stream",
    ],
)
def test_every_failure_is_an_error_of_its_kind(answer: Answers, streamed: bool, error: str) -> None:
    """Refused, hung up, broken off, or an error in the stream: none passes for an answer."""
    with _server(answer) as target:
        row = load(target, rate_per_s=100, seconds=0.1, streamed=streamed, warm_up_s=0.0)
    assert row.errors == {error: len(schedule(100, 0.1, 1))}
    assert row.goodput_per_s == row.bytes_per_s == 0


def test_an_answer_that_never_comes_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience is bounded, and so is the open loop."""
    monkeypatch.setattr(http, "PATIENCE_S", 0.1)
    with _server(_one_at_a_time(60)) as target:
        row = load(target, rate_per_s=50, seconds=0.2, warm_up_s=0.0)
    assert row.errors == {"TimeoutError": len(schedule(50, 0.2, 1))}


@pytest.mark.parametrize("clients", [1, 4])
def test_clients_of_a_closed_loop_work_side_by_side(
    clients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many requests at once as clients, and never more: none is answered before all wait."""
    monkeypatch.setattr(http, "PATIENCE_S", 10.0)
    waiting, most, all_there = 0, 0, asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        if waiting == clients:
            all_there.set()
        await all_there.wait()
        await asyncio.sleep(_STEP_S)
        waiting -= 1
        writer.write(_OK)

    with _server(answer) as target:
        row = load(target, clients=clients, seconds=0.1, warm_up_s=0.0)
    assert (row.errors, most) == ({}, clients)


def test_the_driver_tells_its_processor_time_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    busy_s = iter([10.0, 10.3])
    monkeypatch.setattr(http.time, "process_time", lambda: next(busy_s))
    with _server(_after_a_step) as target:
        began_s = time.perf_counter()
        row = load(target, clients=1, seconds=0.2, warm_up_s=0.05)
        took_s = time.perf_counter() - began_s
    assert 0.3 / took_s - 0.001 <= row.client_cores <= 0.3 / 0.25


def test_who_is_hung_up_on_waits_a_little_before_the_next_try() -> None:
    with _server(_hang_up) as target:
        row = load(target, clients=2, seconds=0.1, warm_up_s=0.0)
    assert 0 < row.requests <= 2 * 11  # 10 ms each


def test_the_warm_up_is_before_the_seconds_that_count() -> None:
    with _server(_at_once) as target:
        row = load(target, rate_per_s=200, seconds=0.1, warm_up_s=0.05, seed=2)
    arrivals = schedule(200, 0.15, 2)
    assert 0 < row.requests == sum(moment >= 0.05 for moment in arrivals) < len(arrivals)
    assert (row.loop, row.clients, row.rate_per_s, row.seconds) == ("open", None, 200, 0.1)


def test_a_pool_has_as_many_connections_as_are_wanted_and_as_much_patience() -> None:
    """All that are wanted, where no number is given: a thousand requests wait at once."""

    async def pool(*given: Any) -> tuple[int, float | None]:
        async with connect(*given) as session:
            assert session.connector is not None
            return session.connector.limit, session.timeout.total

    assert asyncio.run(pool()) == (0, None)
    assert asyncio.run(pool(7, 3.0)) == (7, 3.0)


def test_a_driver_that_waits_takes_a_part_of_a_core() -> None:
    with _server(_after_a_step) as target:
        row = load(target, clients=1, seconds=0.1, warm_up_s=0.0)
    assert (row.loop, row.clients, row.rate_per_s) == ("closed", 1, None)
    assert 0 < row.client_cores < 0.9


def test_what_is_asked_for_is_decided_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 bytes, or evenly from 16 to 400; and each request has a seed of its own."""

    def asked(seed: int, **lengths: Any) -> list[tuple[int, int]]:
        heard: list[bytes] = []
        # A second is a request, however busy the machine is.
        clock = SimpleNamespace(perf_counter=lambda: len(heard), process_time=time.process_time)
        monkeypatch.setattr(http, "time", clock)
        with _server(_at_once, heard) as target:
            load(target, clients=1, seconds=40, warm_up_s=0.0, seed=seed, **lengths)
        bodies = [json.loads(body) for body in heard]
        return [(body["max_tokens"], body["seed"]) for body in bodies]

    fixed, mixed, again, other = asked(1), *(asked(seed, lengths="mixed") for seed in (1, 1, 2))
    assert {size for size, _ in fixed} == {BYTES}
    assert len({seed for _, seed in fixed}) == len(fixed) == 40
    sizes = [size for size, _ in mixed]
    assert 16 <= min(sizes) < 80
    assert 320 < max(sizes) <= 400
    assert mixed == again != other


def test_a_server_is_asked_for_what_it_can_do_alone() -> None:
    whole = Target("fake", 0, server=Server(modes=(False,)))
    with pytest.raises(ValueError, match="fake cannot be asked with streamed=True"):
        load(whole, clients=1, seconds=0.1, streamed=True)


def test_a_service_is_asked_for_the_model_it_is_named_after() -> None:
    """It has others beside it; a peer has one, and is not asked for any."""
    asked = {n: Target(n, 0, server=SERVERS[n]).body(9, 7, stream=False) for n in SERVERS}
    named = {name: json.loads(body).get("model") for name, body in asked.items()}
    others = dict.fromkeys(PEERS)
    assert named == others | {SERVICE: "shakespeare", IN_EIGHT_BITS: "shakespeare-int8"}
    for stream in (False, True):
        told = json.loads(Target(SERVICE, 0, server=SERVERS[SERVICE]).body(9, 7, stream=stream))
        assert told.get("stream", False) is stream


def test_a_gap_is_over_the_bytes_that_came_after_it() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(_STREAM)
        last = 'data: {"text": "éééé"}\n\ndata: [DONE]\n\n'.encode()
        for data in (b'data: {"text": "a"}\n\n', last):
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await asyncio.sleep(_STEP_S)
        writer.write(b"0\r\n\r\n")

    with _server(answer) as target:
        row = load(target, streamed=True, **_ONE_REQUEST)
    assert row.latency_ms is not None
    assert row.first_byte_ms is not None
    assert row.gap_ms_per_byte is not None
    assert row.gap_ms_per_byte.samples == row.latency_ms.samples == 1
    gap_ms = row.latency_ms.p50 - row.first_byte_ms.p50
    assert row.gap_ms_per_byte.p50 == pytest.approx(gap_ms / 8, abs=2e-3)


@pytest.mark.parametrize("most", [1, 1000])
def test_the_events_of_this_service_are_text_however_they_are_cut(most: int) -> None:
    """In pieces of so many bytes; an event has come when all of it has, and a comment is none."""
    events = (
        {"choices": [{"text": "a"}]},
        {"text": "é"},
        {"choices": [{"text": ""}]},
        {"choices": [], "usage": {"completion_tokens": 3}},
    )
    told = "".join(f"id: 1\ndata: {json.dumps(e, ensure_ascii=False)}\n\n" for e in events)
    whole = f": still at work\n\n{told}data: [DONE]\n\n".encode()

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(_STREAM)
        for begin in range(0, len(whole), most):
            piece = whole[begin : begin + most]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")

    async def asked(target: Target) -> tuple[str, float, list[float]]:
        async with connect() as session:
            answer = await ask(session, target, 3, 1, streamed=True)
        return answer.text, answer.first_s, [moment_s for moment_s, _ in answer.events]

    with _server(answer) as target:
        text, first_s, moments_s = asyncio.run(asked(target))
    assert text == "aé"
    assert len(moments_s) == 2
    assert first_s == moments_s[0]


def test_the_first_byte_of_a_stream_is_there_with_all_of_its_event() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(_STREAM)
        for data in (b'data: {"text"', b': "a"}\n\ndata: [DONE]\n\n'):
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await asyncio.sleep(_STEP_S)
        writer.write(b"0\r\n\r\n")

    with _server(answer) as target:
        row = load(target, streamed=True, **_ONE_REQUEST)
    assert (row.errors, row.first_byte_ms) == ({}, row.latency_ms)
    assert row.first_byte_ms is not None
    assert row.first_byte_ms.p50 > 0.8 * _STEP_S * 1e3
