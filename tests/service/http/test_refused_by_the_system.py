"""What the operating system refuses of one connection is no matter of the others, nor for ever."""

import asyncio
import os
from errno import EINVAL, ENOBUFS, ENOMEM
from socket import AF_INET
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from service.app import create_app
from service.http import gate as gates
from service.http.connections import HttpConnection
from service.http.gate import Gate
from service.settings import Settings


def _gate() -> Gate:
    return Gate(Settings(max_connections=4), lambda error, client: None)


@pytest.mark.parametrize("number", [ENOBUFS, EINVAL])
def test_a_connection_whose_buffers_stay_as_they_are_has_its_place_and_its_time(
    number: int,
) -> None:
    """It was open for ever, asked what it may, and nobody counted it."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    theirs, ours = ("10.0.0.8", 1), ("10.0.0.9", 8000)
    raw = SimpleNamespace(
        setsockopt=refuse, getpeername=lambda: theirs, getsockname=lambda: ours, family=AF_INET
    )
    closed: list[bool] = []
    wire: Any = SimpleNamespace(
        get_extra_info={"socket": raw}.get,
        is_closing=lambda: False,
        is_reading=lambda: True,
        close=lambda: closed.append(True),
    )

    async def come() -> None:
        gate = _gate()
        connection = HttpConnection(Config(create_app), ServerState(), {}, gate=gate)
        connection.connection_made(wire)
        assert gate._by_network == {"10.0.0.8": 1}
        connection.look(connection.loop.time() + gate.timeout_s + 1)

    asyncio.run(come())
    assert closed == [True]


def test_a_connection_at_which_nobody_can_look_ends_and_all_others_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After one of them nobody's time passed any more, as long as the service ran."""
    monkeypatch.setattr(gates, "_LOOK_EVERY_S", 0.0)
    gate, looks, ended = _gate(), list[str](), list[str]()

    class Connection:
        """One that is gone from the gate when it is ended."""

        unread_bytes = 0

        def __init__(self, name: str) -> None:
            self.name = name
            self.transport = self

        def look(self, now_s: float) -> None:
            looks.append(self.name)
            if self.name == "bad":
                raise OSError(ENOMEM, os.strerror(ENOMEM))

        def abort(self) -> None:
            ended.append(self.name)
            gate.leave(self)  # type: ignore[arg-type]

    async def watch() -> None:
        watching = asyncio.ensure_future(gate.watch())
        while looks.count("good") < 3 and not watching.done():
            await asyncio.sleep(0)
        watching.cancel()

    for name in ("bad", "good"):
        gate.enter(Connection(name), name)  # type: ignore[arg-type]
    asyncio.run(watch())
    assert looks == ["bad", "good", "good", "good"]
    assert ended == ["bad"]
    assert caplog.messages == ["a look at a connection failed; it ends"]
