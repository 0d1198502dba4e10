"""A load balancer: TCP connections by turns to the replicas whose `/readyz` is green."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_EVERY_S = 0.1
_PATIENCE_S = 0.5
_PROBE = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


class Proxy:
    """Listens on `port`; `ports` are those of the replicas, whatever they are up to."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.port = 0
        self._ready: list[int] = []
        self._turns = itertools.count()

    async def run(self, started: threading.Event, stop: asyncio.Event) -> None:
        """Serve until told to stop."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        while not stop.is_set():
            ports = list(self.ports)
            green = await asyncio.gather(*map(_is_ready, ports))
            self._ready = list(itertools.compress(ports, green))
            started.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _LOOK_EVERY_S)
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            port = self._ready[next(self._turns) % len(self._ready)]
            theirs = await asyncio.open_connection("127.0.0.1", port)
        except (OSError, ZeroDivisionError):
            writer.transport.abort()
            return
        both = [
            asyncio.create_task(_pump(reader, theirs[1])),
            asyncio.create_task(_pump(theirs[0], writer)),
        ]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, theirs[1]):
            with contextlib.suppress(OSError):
                end.close()
                await end.wait_closed()
        await asyncio.gather(*both, return_exceptions=True)


@contextmanager
def balancing() -> Iterator[Proxy]:
    """A proxy that runs in a thread of its own."""
    proxy, started, stop = Proxy(), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(proxy.run(started, stop),))
    thread.start()
    started.wait()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


async def _is_ready(port: int) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(_PROBE)
                return b" 200 " in await reader.readline()
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError):
        return False
