"""Where somebody asks from, and how much is kept of all who ever asked."""

from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from service.engine import terms
from service.http.addresses import address_of, network
from service.http.callers import Callers
from service.http.guard import _is_address, is_loopback
from tests.service.serving import told_by


def test_who_comes_through_a_file_has_no_address() -> None:
    """As from a proxy on this machine that has a socket of the file system."""
    assert address_of(None) == "address:"


@pytest.mark.parametrize("told", [network, is_loopback, _is_address])
def test_of_what_strangers_send_the_last_thousands_are_kept(told: Any) -> None:
    for number in range(5000):
        told(f"host-{number}")
    assert told.cache_info().currsize < 5000


def test_where_there_are_no_keys_work_is_on_behalf_of_an_address() -> None:
    """In the queue they take turns."""
    asked_by: list[str] = []

    async def inside(scope: Scope, receive: Receive, send: Send) -> None:
        asked_by.append(terms.current().caller)

    callers, path = Callers(inside, None, local=True), "/v1/completions"
    for host in ("192.0.2.1", "192.0.2.2"):
        told_by(callers, {"type": "http", "path": path, "client": (host, 1), "headers": []})
    assert asked_by == ["address:192.0.2.1", "address:192.0.2.2"]
