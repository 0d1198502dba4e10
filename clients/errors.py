"""What the service refuses, in its own words."""

from contextlib import suppress
from typing import Any

import httpx

# Of whole answers; an event has no status, and what is at fault instead.
_TEMPORARY = {httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS}
# An address without http://, and what no request can be made of.
_WRONG_FOR_EVER = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


class Refused(Exception):
    """An error that the service told; `temporary` if the same request may succeed after
    `pause_s`."""

    def __init__(self, message: str, *, temporary: bool = False, pause_s: float = 0) -> None:
        super().__init__(message)
        self.temporary = temporary
        self.pause_s = pause_s

    @classmethod
    def by(cls, event: dict[str, Any]) -> "Refused":
        """The error that ends a stream."""
        error = event["error"]
        message = _words(error["message"]) or "the answer ended in an error"
        return cls(message, temporary=error.get("type") != "invalid_request_error")


def check(response: httpx.Response) -> None:
    """Raises what a response was refused for."""
    if response.is_success:
        return
    response.read()
    pause = response.headers.get("Retry-After", "")
    raise Refused(
        _message(response),
        temporary=response.is_server_error or response.status_code in _TEMPORARY,
        pause_s=float(pause) if pause.isdecimal() else 0,
    )


def is_temporary(error: BaseException) -> bool:
    """Whether it may be worth another try, of this replica or of another."""
    if isinstance(error, Refused):
        return error.temporary
    return isinstance(error, httpx.TransportError) and not isinstance(error, _WRONG_FOR_EVER)


def _message(response: httpx.Response) -> str:
    with suppress(ValueError, LookupError, TypeError):
        if message := _words(response.json()["error"]["message"]):
            return message
    asked = response.url.copy_with(userinfo=b"")  # a password is for no log
    # Not followed: a key would go along.
    to = (
        f", which sends to {response.headers['Location']}" if response.has_redirect_location else ""
    )
    return f"{response.status_code} {response.reason_phrase} from {asked}{to}"


def _words(message: Any) -> str:
    """A message, or nothing: a proxy may have none, or something else."""
    return message if isinstance(message, str) else ""
