"""The load driver against fake servers that are slow, stall, refuse or break off."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from bench import http
from bench.http import load, schedule
from bench.target import Target

_OK = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"text": "abc"}'
_REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
_STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_STEP_S = 0.02

Answers = Callable[[asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def _server(answer: Answers) -> Iterator[Target]:
    """A server on a thread of its own that answers every request with `answer`."""
    loop = asyncio.new_event_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(w for w in head.split(b"\r\n") if w.startswith(b"Content-Length"))
                await reader.readexactly(int(length.split(b":")[1]))
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


async def _refuse(writer: asyncio.StreamWriter) -> None:
    writer.write(_REFUSED)


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
        polite = load(target, clients=1, seconds=0.3, warm_up_s=0.0)
    assert waiting.latency_ms is not None
    assert polite.latency_ms is not None
    assert waiting.latency_ms.p99 > 400
    assert waiting.latency_ms.p50 > 200
    assert waiting.latency_ms.p50 > 4 * polite.latency_ms.p50


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
        (_refuse, True, "503"),
        (_hang_up, False, "ServerDisconnectedError"),
        (_stream(b'{"text": "a"}'), True, "ValueError"),
        (_stream(b'{"error": {}}', b"[DONE]"), True, "ValueError"),
        (_stream(b"[DONE]"), True, "ValueError"),
    ],
    ids=["refused", "stream refused", "hung up", "broken off", "error event", "empty stream"],
)
def test_every_failure_is_an_error_of_its_kind(answer: Answers, streamed: bool, error: str) -> None:
    """Refused, hung up, broken off, or an error in the stream: none passes for an answer."""
    with _server(answer) as target:
        row = load(target, clients=2, seconds=0.1, streamed=streamed, warm_up_s=0.0)
    assert row.errors == {error: row.requests}
    assert row.requests > 0
    assert row.goodput_per_s == row.bytes_per_s == 0


def test_an_answer_that_never_comes_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience is bounded, and so is the open loop."""
    monkeypatch.setattr(http, "PATIENCE_S", 0.1)
    with _server(_one_at_a_time(60)) as target:
        row = load(target, rate_per_s=50, seconds=0.2, warm_up_s=0.0)
    assert row.errors == {"TimeoutError": row.requests}


def test_clients_of_a_closed_loop_work_side_by_side() -> None:
    """So many clients, so many times one's requests, at a server with hands enough."""
    with _server(_after_a_step) as target:
        one, many = (
            load(target, clients=n, seconds=0.4, warm_up_s=0.1, lengths="mixed") for n in (1, 4)
        )
    assert many.requests_per_s > 2 * one.requests_per_s


def test_what_counts_are_the_arrivals_after_the_warm_up() -> None:
    with _server(_after_a_step) as target:
        row = load(target, rate_per_s=100, seconds=0.3, warm_up_s=0.3)
    assert row.requests == sum(moment >= 0.3 for moment in schedule(100, 0.6, 1))
    assert row.seconds == 0.3


def test_the_driver_tells_its_processor_time_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    busy_s = iter([10.0, 10.3])
    monkeypatch.setattr(http.time, "process_time", lambda: next(busy_s))
    with _server(_after_a_step) as target:
        began_s = time.perf_counter()
        row = load(target, clients=1, seconds=0.5, warm_up_s=0.1)
        took_s = time.perf_counter() - began_s
    assert 0.3 / took_s - 0.001 <= row.client_cores <= 0.3 / 0.6
