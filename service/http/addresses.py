"""Where somebody asks from, which tells callers without a key apart."""

from collections.abc import Callable
from functools import lru_cache, wraps
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TypeVar

Client = tuple[str, int] | None  # host and port, as ASGI has them
T = TypeVar("T")
# With what a proxy was sent and passes on, thousands would be as long as heads: 100 MB and more.
_LONGEST_KEPT = 253  # as names are, and uvicorn keeps no longer ones either


def kept(about: Callable[[str], T]) -> Callable[[str], T]:
    """Remember what is found about the last thousands of hosts, but for those longer than any."""
    known = lru_cache(maxsize=4096)(about)

    @wraps(known)
    def found(host: str) -> T:
        return known(host) if len(host) <= _LONGEST_KEPT else about(host)

    return found


def address_of(client: Client) -> str:
    """As the log and the queue know whoever has no key."""
    return f"address:{network(client[0] if client else '')}"


@kept
def network(host: str) -> str:
    """Where somebody is at home: of IPv6, whose users have billions, the /64."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address.packed, 64), strict=False))
