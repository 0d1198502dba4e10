"""Where somebody asks from, which tells callers without a key apart."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

Client = tuple[str, int] | None  # host and port, as ASGI has them


def address_of(client: Client) -> str:
    """As the log and the queue know whoever has no key."""
    return f"address:{network(client[0] if client else '')}"


@lru_cache(maxsize=4096)
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
