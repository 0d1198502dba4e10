"""Where somebody asks from, and how much is kept of all who ever asked."""

import sys
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from service.engine import terms
from service.http.addresses import Client, address_of, network
from service.http.callers import Callers
from service.http.guard import _is_address, is_loopback
from tests.service.serving import told_by


def test_who_comes_through_a_file_has_no_address() -> None:
    """As from a proxy on this machine that has a socket of the file system."""
    assert address_of(None) == "address:"


_TOLD = pytest.mark.parametrize("told", [network, is_loopback, _is_address])


@_TOLD
def test_of_what_strangers_send_the_last_thousands_are_kept(told: Any) -> None:
    for number in range(5000):
        told(f"host-{number}")
    assert told.__wrapped__.cache_info().currsize < 5000


@_TOLD
@pytest.mark.parametrize("end", ["", "::1%"])
def test_of_what_no_address_is_as_long_as_nothing_is_kept(told: Any, end: str) -> None:
    """A proxy may pass on whatever it was sent, up to the length of a head."""
    host = end + told.__name__ * 3000
    before = sys.getrefcount(host)
    told(host)
    assert sys.getrefcount(host) == before


@pytest.mark.parametrize(
    ("client", "id_", "admin"),
    [
        (("127.0.0.1", 1), "address:127.0.0.1", True),
        (("192.0.2.1", 1), "address:192.0.2.1", False),
        (None, "address:", False),
    ],
)
def test_where_there_are_no_keys_work_is_on_behalf_of_an_address(
    client: Client, id_: str, admin: bool
) -> None:
    """In the queue they take turns. A connection that was closed at once has none."""
    found = list[tuple[str, bool]]()

    async def inside(scope: Scope, receive: Receive, send: Send) -> None:
        found.append((terms.current().caller, scope["state"]["caller"].admin))

    callers = Callers(inside, None, local=True)
    told_by(callers, {"type": "http", "path": "/v1/models", "client": client, "headers": []})
    assert found == [(id_, admin)]
