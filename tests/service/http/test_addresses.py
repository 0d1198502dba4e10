"""Where somebody asks from, and how much is kept of all who ever asked."""

from typing import Any

import pytest

from service.http.addresses import address_of, network
from service.http.guard import _is_address, is_loopback


def test_who_comes_through_a_file_has_no_address() -> None:
    """As from a proxy on this machine that has a socket of the file system."""
    assert address_of(None) == "address:"


@pytest.mark.parametrize("told", [network, is_loopback, _is_address])
def test_of_what_strangers_send_the_last_thousands_are_kept(told: Any) -> None:
    for number in range(5000):
        told(f"host-{number}")
    assert told.cache_info().currsize < 5000
