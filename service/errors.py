"""What can go wrong for a caller, each with its HTTP status and OpenAI error type.

ServiceError
├── InvalidRequest      400  the request breaks a rule; names the parameter
├── Unauthorized        401  no API key, or one that is not known here
├── Forbidden           403  a host, an origin or a key that may not do this
├── UnknownModel        404  no model of that name
├── UnknownStyle        404  no stored hand of that name
├── NoSuchRoute         404  a part of OpenAI's API that is not here
├── RequestTimeout      408  the request arrives too slowly
├── StateMismatch       409  a state token of another model or runtime
├── NotLoaded           409  an artifact that cannot be served as it is now
├── BodyTooLarge        413  the body is over the limit
├── CodedBody           415  the body is compressed, or coded in another way
├── TooManyRequests     429  the caller has used up what its key allows
├── HeadTooLarge        431  URL, headers or trailers are over the limit
├── EngineFault         500  the model failed at its work; another try may succeed
├── Overloaded          503  others would hold it up for too long; try again
├── NotReady            503  the model has not proved itself
└── DeadlineExceeded    504  not finished within its deadline
"""

from collections.abc import Mapping
from typing import Any

_LONGEST_NAME = 40
# OpenAI's clients ask twice more after any other 409 and 5xx.
_ASK_NO_MORE = (("X-Should-Retry", "false"),)


def shown(name: str) -> str:
    """A name as an error tells it: a caller may have made it any length."""
    return repr(shortened(name))


def shortened(told: str, most: int = _LONGEST_NAME) -> str:
    """The beginning of what a caller may have made any length, if it has more characters."""
    return told if len(told) <= most else f"{told[: most - 3]}..."


def rule_of(problem: Mapping[str, Any]) -> str:
    """What an error of pydantic says; a rule of ours without the name of an exception before it."""
    return str(problem.get("ctx", {}).get("error", problem["msg"]))


class ServiceError(Exception):
    """An error with a place in the HTTP world; `param` names the offending request field."""

    status = 500
    type = "server_error"
    code: str | None = None
    retry_after_s: int | None = None
    headers: tuple[tuple[str, str], ...] = ()  # that every answer with it has

    def __init_subclass__(cls) -> None:
        """Below 500 the request is at fault, unless a class says otherwise."""
        if cls.status < 500 and cls.type == ServiceError.type:
            cls.type = "invalid_request_error"

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param

    def body(self) -> dict[str, dict[str, str | None]]:
        """The OpenAI error body."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": error}


class InvalidRequest(ServiceError):
    status = 400


class Unauthorized(ServiceError):
    status = 401
    code = "invalid_api_key"
    # RFC 6750 wants one parameter at least.
    headers = (("WWW-Authenticate", 'Bearer realm="evenkeel"'),)


class Forbidden(ServiceError):
    status = 403
    code = "forbidden"


class UnknownModel(ServiceError):
    status = 404
    code = "model_not_found"


class UnknownStyle(ServiceError):
    status = 404
    code = "style_not_found"


class NoSuchRoute(ServiceError):
    status = 404
    code = "unknown_url"


class RequestTimeout(ServiceError):
    status = 408
    code = "request_timeout"
    headers = (("Connection", "close"),)


class StateMismatch(ServiceError):
    status = 409
    code = "state_mismatch"
    headers = _ASK_NO_MORE


class NotLoaded(ServiceError):
    status = 409
    code = "not_loaded"


class BodyTooLarge(ServiceError):
    status = 413
    code = "body_too_large"


class CodedBody(ServiceError):
    status = 415
    code = "coded_body"
    headers = (("Accept-Encoding", "identity"),)


class TooManyRequests(ServiceError):
    status = 429
    type = "rate_limit_error"
    code = "rate_limited"
    retry_after_s = 1


class HeadTooLarge(ServiceError):
    status = 431
    code = "headers_too_large"


class Overloaded(ServiceError):
    status = 503
    code = "overloaded"
    retry_after_s = 1


class EngineFault(ServiceError):
    """The model failed while it worked on a request; the next one finds a new runner."""

    code = "engine_fault"


class NotReady(ServiceError):
    status = 503
    code = "not_ready"
    retry_after_s = 2


class DeadlineExceeded(ServiceError):
    status = 504
    code = "deadline_exceeded"
    headers = _ASK_NO_MORE
