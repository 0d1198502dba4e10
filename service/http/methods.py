"""Routes that are asked by HEAD wherever they are by GET (RFC 9110 §9.1), as `curl -I` and monitors
do; the server leaves the body out.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter

F = TypeVar("F", bound=Callable[..., Any])


class Routes(APIRouter):
    """Those of a part of the API."""

    def get(self, path: str, **options: Any) -> Callable[[F], F]:
        by_head, by_get = super().head(path, **options), super().get(path, **options)
        # Two routes: a document has an operation for each method, of a name of its own.
        return lambda answer: by_get(by_head(answer))
