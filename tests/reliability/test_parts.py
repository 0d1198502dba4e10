"""What measures is itself in order: the clients, what stands before replicas, and the faults."""

import asyncio
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from bench.target import Target
from service.engine.chunk import Chunks
from tests.reliability import faulty, held, proxy, soak, work
from tests.reliability.proxy import Proxy
from tests.reliability.reader import Reader
from tests.reliability.soak import _Soak
from tests.reliability.work import INK, TEXT, Reply, ask


def _stream(*events: dict[str, Any], end: bytes = b"data: [DONE]\n\n") -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + end


_TEXT = {"choices": [{"text": "ab"}]}


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (_stream(_TEXT), ("200", ["a", "b"])),
        (_stream(_TEXT, end=b""), ("cut", [])),
        (_stream(_TEXT, {"error": {"code": "timeout"}}), ("timeout", [])),
    ],
    ids=["whole", "cut", "error"],
)
def test_a_stream_is_an_answer_with_its_end_and_without_an_error(
    raw: bytes, told: tuple[str, list[str]]
) -> None:
    assert work._read(raw) == told


def _asked(
    chunks: list[bytes], monkeypatch: pytest.MonkeyPatch, status: int = 200, **more: Any
) -> Reply:
    """To a service that sends these pieces, of which each takes a second."""
    now_s = itertools.count()

    async def pieces() -> Any:
        for chunk in chunks:
            yield chunk

    @asynccontextmanager
    async def post(url: str, *, json: Any) -> Any:
        yield SimpleNamespace(
            status=status,
            headers={"Retry-After": "7"},
            content=SimpleNamespace(iter_any=pieces),
        )

    clock = SimpleNamespace(perf_counter=lambda: float(next(now_s)))
    monkeypatch.setattr(work, "time", clock)
    session: Any = SimpleNamespace(post=post)
    return asyncio.run(ask(session, "", TEXT, 1, **more))


def test_the_first_character_is_there_with_the_piece_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which heads, comments and the beginning of an event are not."""
    whole = _stream(_TEXT)
    reply = _asked([b": at work\n\n", whole[:9], whole[9:]], monkeypatch, intended_s=-5.0)
    assert (reply.status, reply.content) == ("200", ["a", "b"])
    assert (reply.intended_s, reply.sent_s, reply.first_s, reply.ended_s) == (-5, 0, 1, 2)
    assert reply.retry_after_s == "7"


def test_a_refusal_took_until_it_had_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = _asked([b'{"error": {}}'], monkeypatch, status=503)
    assert (reply.status, reply.content) == ("503", ())
    assert (reply.intended_s, reply.sent_s, reply.first_s, reply.ended_s) == (0, 0, 1, 1)


def test_what_is_held_is_told_each_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    process = SimpleNamespace(
        memory_info=lambda: SimpleNamespace(rss=5e8), num_threads=lambda: 7, num_fds=lambda: 9
    )
    page = 'evenkeel_requests_running{m="a"} 2\nevenkeel_requests_waiting{m="a"} 3\n'
    monkeypatch.setattr(held.psutil, "Process", lambda pid: process)
    monkeypatch.setattr(held, "metrics", lambda _: page)
    assert held.held_by(Target("service", 1)) == held.Held(500.0, 7, 9, 2, 3)


def test_an_answer_that_differs_from_the_one_before_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And those to other requests are known by work and seed; one client in ten leaves."""
    came: list[tuple[str, int, bool]] = []

    async def answer(_: object, url: str, work: Any, seed: int, *, leaves: bool) -> Reply:
        came.append((work.name, seed, leaves))
        content = [work.name, seed] if len(came) < 12 else ["other"]
        return Reply(
            status="200", intended_s=0, sent_s=0, first_s=0, ended_s=0, content=content
        )  # fmt: skip

    monkeypatch.setattr(soak, "ask", answer)
    known = {(w.name, seed): [w.name, seed] for w in (TEXT, INK) for seed in range(16)}
    session: Any = None

    async def all_of() -> _Soak:
        going_on = _Soak(Target("service", 1), session, known)  # type: ignore[arg-type]
        for number in range(12):
            await going_on.one((TEXT, INK)[number % 2], 0.0, number)
        return going_on

    assert asyncio.run(all_of()).outcomes == {"200": 11, "wrong": 1}
    assert [number for number, (*_, leaves) in enumerate(came) if leaves] == [9]


def test_a_reader_compares_every_answer_with_its_first() -> None:
    answers = ["a", "a", "b", "a"]
    reader = Reader("http://127.0.0.1:9", 0, 10)

    def events() -> Iterator[dict[str, Any]]:
        if len(answers) == 1:
            reader._ends.set()
        yield {"text": answers.pop(0)}

    reader._events = events
    with reader:
        reader.learn()
        reader._thread.join()
    for counts in reader._client._http.event_hooks["request"]:
        counts(httpx.Request("GET", "http://127.0.0.1"))
    assert reader.requests == 1
    assert (reader.expected, reader.streams, reader.wrong, reader.lost) == (["a"], 3, 1, [])


def test_a_reader_ends_when_its_present_answer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, waits = Reader("http://127.0.0.1:9", 0, 10), threading.Event()
    usual = reader._thread.join

    def join() -> None:
        waits.set()
        usual()

    def events() -> Iterator[dict[str, Any]]:
        if reader.expected:
            reader._ends.wait()
            waits.wait(30)  # so that whoever did not wait is there first
        yield {"text": "a"}

    reader._events = events
    monkeypatch.setattr(reader._thread, "join", join)
    with reader:
        reader.learn()
        reader.end()
        streams = reader.streams
        waits.set()
    assert streams == 1


def test_every_third_reader_asks_for_ink_and_each_for_so_much() -> None:
    asked: list[tuple[str, int]] = []

    def complete(*, model: str, prompt: str, max_tokens: int, seed: int) -> Iterator[Any]:
        asked.append((f"{max_tokens} bytes", seed))
        return iter(())

    def write(*, text: str, seed: int) -> Iterator[Any]:
        asked.append((f"{text.count(chr(10))} lines", seed))
        return iter(())

    for seed in range(6):
        reader = Reader("http://127.0.0.1:9", seed, 600)
        with reader._client:
            reader._client = SimpleNamespace(complete=complete, write=write)  # type: ignore[assignment]
        list(reader._events())
    text, ink = "600 bytes", "2 lines"
    assert asked == list(zip([text, text, ink] * 2, range(6), strict=True))


def _closed_port() -> int:
    """A port where nobody listens any more."""
    with socket.create_server(("127.0.0.1", 0)) as listens:
        port: int = listens.getsockname()[1]
        return port


@asynccontextmanager
async def _replica(status: int, asked: list[int]) -> Any:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/readyz" not in head:
            asked.append(writer.get_extra_info("sockname")[1])
        writer.write(b"HTTP/1.1 %d It\r\ncontent-length: 0\r\n\r\n" % status)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def test_connections_go_by_turns_to_the_replicas_that_are_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxy, "_PATIENCE_S", 10.0)
    asked: list[int] = []

    async def ask_four() -> list[int]:
        balancer, stop = Proxy(), asyncio.Event()
        started: Any = SimpleNamespace(set=began.set) if (began := asyncio.Event()) else None
        async with (
            _replica(200, asked) as one, _replica(503, asked) as busy, _replica(200, asked) as two,
        ):  # fmt: skip
            balancer.ports = [one, busy, _closed_port(), two]
            running = asyncio.create_task(balancer.run(started, stop))
            await began.wait()
            for _ in range(4):
                reader, writer = await asyncio.open_connection("127.0.0.1", balancer.port)
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                await reader.read()
                writer.close()
            stop.set()
            await running
        return [one, two]

    one, two = asyncio.run(ask_four())
    assert asked == [one, two, one, two]


def test_a_replica_that_is_not_ready_is_no_replica() -> None:
    async def ready() -> list[bool]:
        async with _replica(200, []) as one, _replica(503, []) as two:
            return [await proxy._is_ready(port) for port in (one, two, _closed_port())]

    assert asyncio.run(ready()) == [True, False, False]


def test_the_clock_goes_back_by_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", time.time)  # what is set is put back
    monkeypatch.setattr(time, "time_ns", time.time_ns)
    before_s = time.time()
    faulty._set_back()
    assert before_s - 3600 <= time.time() < before_s - 3590
    assert time.time_ns() / 1e9 == pytest.approx(time.time(), abs=1.0)


def test_as_many_runs_fail_as_were_told_to_and_those_between_are_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(faulty._due, "faults", 0)
    monkeypatch.setattr(faulty, "_run", lambda _, steps, *, filtered: 0.5 * steps)
    chunks = object.__new__(Chunks)
    ran: list[float | None] = []
    faulty._fail_once()
    faulty._fail_once()
    for _ in range(5):
        try:
            ran.append(faulty._run_or_fail(chunks, 3, filtered=True))
        except MemoryError:
            ran.append(None)
    assert ran == [None, 1.5, None, 1.5, 1.5]
