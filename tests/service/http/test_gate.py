"""Who gets a place, and whose is taken, as facts about the gate alone."""

from types import SimpleNamespace
from typing import Any

from service.http.gate import _RESERVE, Gate
from service.settings import Settings

_PROXY = "10.0.0.9"


def _gate() -> Gate:
    """Of four places, behind a proxy."""
    chosen = Settings(max_connections=4, trusted_proxies=(_PROXY,))
    return Gate(chosen, lambda error: None)


class _Connection:
    """One that notes when it is ended."""

    def __init__(self, ended: list[Any]) -> None:
        self.transport = SimpleNamespace(abort=lambda: ended.append(self))


def test_a_proxy_may_have_all_places_and_nobody_else_more_than_half() -> None:
    for host, entered in ((_PROXY, 4), ("10.0.0.8", 2)):
        gate = _gate()
        connections: list[Any] = [_Connection([]) for _ in range(4)]
        assert sum(gate.enter(connection, host) for connection in connections) == entered


def test_of_those_beyond_the_limit_the_one_that_came_first_makes_room() -> None:
    ended: list[Any] = []
    gate = _gate()
    connections: list[Any] = [_Connection(ended) for _ in range(4 + _RESERVE + 2)]
    for connection in connections:
        gate.enter(connection, _PROXY)
    assert ended == connections[4:6]
