"""Whom a request is for, where its target says so in full, as those of requests to a proxy do."""

import re

_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
Headers = list[tuple[bytes, bytes]]  # with names in lower case


def own_form(url: bytes, headers: Headers, *, old: bool = False) -> bytes:
    """The path and query that are asked for. As what goes through a proxy, a target may name its
    host, which then stands in `headers` for whatever they had (RFC 9112 §3.2.2), and where they had
    none, if the request is an `old` one, of HTTP/1.0."""
    absolute = _ABSOLUTE.fullmatch(url)
    if absolute is None:
        return url
    host, path = absolute.groups()
    named = any(name == b"host" for name, _ in headers)
    headers[:] = [(name, host if name == b"host" else value) for name, value in headers]
    if old and not named:
        headers.append((b"host", host))
    return path if path.startswith(b"/") else b"/" + path
