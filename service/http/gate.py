"""Who may have a connection, and for how long: one client gets only a part of the places, and one
that does not read its answers is disconnected.
"""

import asyncio
import logging
import math
import resource
import select
from collections import Counter
from collections.abc import Callable

from service.errors import ServiceError
from service.http.addresses import Client, network
from service.settings import Settings

log = logging.getLogger(__name__)

# Connections beyond the limit, for probes alone: a new one takes the place of the oldest.
_RESERVE = 16
# Listening socket, event loop, log, artifacts: some 30 while serving, more while models change.
_OTHER_FILES = 64
_LOOK_EVERY_S = 0.1
_LEFT = getattr(select, "POLLRDHUP", 0)  # beside errors, which are told anyway
# Of all answers that wait to be read so much is kept. One may have 4 MB, and whoever reads it as
# slowly as is allowed takes most of an hour.
_MOST_UNREAD_BYTES = 128 * 1024 * 1024
# Of what waits to be read, as much has to leave in `request_timeout_s`.
_LEAST_READ_BYTES = 32 * 1024


class Gate:
    """Lets connections in and shows them out; one for a server.

    `refused` hears the errors of what the application never gets to see, and who made them. Raises
    `OSError` where the limit of open files leaves no connection.
    """

    def __init__(self, settings: Settings, refused: Callable[[ServiceError, Client], None]) -> None:
        self.max_header_bytes = settings.max_header_bytes
        self.timeout_s = settings.request_timeout_s
        self.refused = refused
        self._proxies = frozenset(settings.trusted_proxies)
        self._places = _places(settings.max_connections)
        self._taken: dict[Watched, str] = {}
        self._by_network: Counter[str] = Counter()
        self._reserve: dict[Watched, None] = {}

    def enter(self, connection: "Watched", host: str) -> bool:
        """Whether a new connection may ask for anything, not only for probes. Nobody gets more
        than half of the places, unless it is a proxy."""
        home = network(host)
        crowded = self._by_network[home] >= max(1, self._places // 2)
        if len(self._taken) < self._places and (host in self._proxies or not crowded):
            self._taken[connection] = home
            self._by_network[home] += 1
            return True
        if len(self._reserve) >= _RESERVE:
            oldest = next(iter(self._reserve))
            self.leave(oldest)
            oldest.transport.abort()
        self._reserve[connection] = None
        return False

    def leave(self, connection: "Watched") -> None:
        """Frees its place, if it has one."""
        self._reserve.pop(connection, None)
        home = self._taken.pop(connection, None)
        if home is not None:
            self._by_network[home] -= 1
            if not self._by_network[home]:
                del self._by_network[home]

    async def watch(self) -> None:
        """Show out, for ever, whoever is too slow."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            for connection in (*self._taken, *self._reserve):
                try:
                    connection.look(loop.time())
                except Exception:  # the time of all others passes as well
                    log.exception("a look at a connection failed; it ends")
                    connection.transport.abort()
            self._make_room()

    def end(self) -> None:
        """End the connections on which something still waits to be read."""
        for connection in list(self._taken):
            if connection.unread_bytes:
                connection.transport.abort()

    def _make_room(self) -> None:
        """End connections until the answers that wait are no more than are kept: each time of the
        home with most of them the one with most."""
        unread = {connection: connection.unread_bytes for connection in self._taken}
        if sum(unread.values()) <= _MOST_UNREAD_BYTES:
            return
        of = Counter[str]()
        for connection, size in unread.items():
            of[self._taken[connection]] += size
        ended = 0
        while of.total() > _MOST_UNREAD_BYTES:
            ((home, _),) = of.most_common(1)
            most = max((c for c in unread if self._taken[c] == home), key=unread.__getitem__)
            of[home] -= unread.pop(most)
            most.transport.abort()
            ended += 1
        log.warning("answers that nobody read were given up: connections that ended: %d", ended)


def allow_files(connections: int) -> None:
    """Raise this process's limit of open files to what so many connections need, if it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _RESERVE + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _places(wanted: int) -> int:
    """For how many of the connections wanted there are files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = _OTHER_FILES + _RESERVE
    if soft == resource.RLIM_INFINITY or soft - kept >= wanted:
        return wanted
    if soft <= kept:
        raise OSError(f"{soft} files may be open at once; it must be {kept + 1} or more: ulimit -n")
    log.warning(
        "connections at once: %d, not the %d of EVENKEEL_MAX_CONNECTIONS, as %d files may be open",
        soft - kept, wanted, soft,
    )  # fmt: skip
    return soft - kept


def _has_left(transport: asyncio.Transport) -> bool:
    """Whether the other end is closed, whatever of it is still to be read."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), _LEFT)
    return bool(poll.poll(0))


class Watched(asyncio.Protocol):
    """A connection that is ended when nobody reads what was written to it, or its client has left
    while it is not read from."""

    gate: Gate
    transport: asyncio.Transport
    _blocked = False
    _unsent_bytes: float = math.inf
    _unread_due_s = math.inf

    @property
    def unread_bytes(self) -> int:
        """Of what was written to it, as much as the system has not taken."""
        return self.transport.get_write_buffer_size()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._blocked = True

    def resume_writing(self) -> None:
        super().resume_writing()
        self._blocked, self._unsent_bytes = False, math.inf

    def connection_lost(self, exc: Exception | None) -> None:
        self.gate.leave(self)
        super().connection_lost(exc)

    def look(self, now_s: float) -> None:
        """End it if it is due."""
        closing = self.transport.is_closing()
        if not closing and not self.transport.is_reading() and _has_left(self.transport):
            self.transport.abort()
        if not (self._blocked or self.transport.is_closing()):
            return
        unsent = self.transport.get_write_buffer_size()
        if unsent <= self._unsent_bytes - _LEAST_READ_BYTES:
            self._unsent_bytes, self._unread_due_s = unsent, now_s + self.gate.timeout_s
        elif now_s > self._unread_due_s:
            self.transport.abort()
