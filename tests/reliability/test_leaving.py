"""Clients that leave do so when and how they are told to, and what is held is looked at until it is
settled."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from bench.target import Target
from tests.reliability import aborts, held
from tests.reliability.aborts import Leaver
from tests.reliability.held import Held
from tests.reliability.work import TEXT

_SERVICE = Target("service", 1)


async def _left(leaver: Leaver, status: int, chance: Any) -> tuple[bool, bytes, str]:
    """Whether it was refused; and what the service has heard of it, and how it left."""
    came = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard = await reader.read(65536)
        writer.write(b"HTTP/1.1 %d It\r\n\r\n" % status)
        try:
            end = "more" if await reader.read() else "closed"
        except ConnectionResetError:
            end = "reset"
        came.set_result((heard, end))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        refused = await aborts._leave(server.sockets[0].getsockname()[1], leaver, chance)
        return refused, *await came


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize(
    ("moment", "end"),
    [
        ("half asked", "closed"),
        ("asked", "closed"),
        ("a moment later", "closed"),
        ("answered", "closed"),
        ("answered", "reset"),
    ],
)
def test_a_client_leaves_when_and_how_it_is_told_to(moment: Any, end: Any, status: int) -> None:
    leaver, waited = Leaver(TEXT, "whole", moment, end, 7), list[float]()
    chance = SimpleNamespace(uniform=lambda least, most: waited.append(most) or 0.0)
    refused, heard, left = asyncio.run(_left(leaver, status, chance))
    asked = aborts._request(leaver)
    assert heard == (asked[: len(asked) // 2] if moment == "half asked" else asked)
    assert left == end
    assert refused == (status == 503 and moment == "answered")  # others have not looked
    assert waited == [0.05] * (moment == "a moment later")


def test_those_that_left_are_told_apart_from_whose_answer_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = "".join(
        f'evenkeel_requests_finished_total{{reason="{why}"}} {n}\n'
        for why, n in (("stop", 9), ("abort", 2))
    )
    monkeypatch.setattr(aborts, "metrics", lambda _: page)
    assert aborts._aborted(_SERVICE) == 2


def test_what_is_held_is_told_once_nothing_runs_or_waits_or_patience_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [0.0]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    def held_by(_: Target) -> Held:
        running, waiting = next(seen)
        return Held(1.0, 1, 1, running, waiting)

    monkeypatch.setattr(held, "time", SimpleNamespace(monotonic=lambda: now_s[0], sleep=sleep))
    monkeypatch.setattr(held, "held_by", held_by)
    seen = iter([(1, 1), (1, 0), (0, 1), (0, 0), (2, 2)])
    assert held.settled(_SERVICE).idle
    assert next(seen) == (2, 2)
    seen = iter([(1, 0)] * 20)
    assert held.settled(_SERVICE, patience_s=1.0).running == 1
    assert now_s[0] == pytest.approx(0.6 + 1.0, abs=0.21)
