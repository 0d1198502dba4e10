"""Whom a request is for, where its target says so in full, as those of requests to a proxy do."""

import re

_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
Headers = list[tuple[bytes, bytes]]  # with names in lower case


def own_form(url: bytes, headers: Headers) -> bytes:
    """The path and query that are asked for. As what goes through a proxy, a target may name its
    host, which then stands in `headers` for whatever they had (RFC 9112 §3.2.2)."""
    absolute = _ABSOLUTE.fullmatch(url)
    if absolute is None:
        return url
    host, path = absolute.groups()
    headers[:] = [(name, host if name == b"host" else value) for name, value in headers]
    return path if path.startswith(b"/") else b"/" + path
