"""What the service has to know of a kind of model."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from service.frames import Frame
from service.models import ServedModel
from service.online import Online
from service.state import Edge

# Of a request's body, as JSON that nobody has checked: the model it names, if any, and the fewest
# steps that its first job can take, 1 at least; None where that is not clear.
Least = Callable[[dict[str, Any]], tuple[str | None, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """One kind of model: what is held of each, its routes, and how it is followed online.

    name     the kind, as manifests spell it
    model    the class of its served models
    edge     what lies at the edge of its states
    routers  its routes
    least    by the path of a route, the least that a body asks for
    opening  the first message of a session on `/v1/online`
    said     any message after it
    frame    what a binary one says, if there may be any
    answers  what those are answered with
    follow   begins such a session
    """

    name: str
    model: type[ServedModel]
    edge: type[Edge] = Edge
    routers: tuple[APIRouter, ...] = ()
    least: Mapping[str, Least] = field(default_factory=dict)
    opening: type[BaseModel]
    said: type[BaseModel]
    frame: Frame | None = None
    answers: tuple[type[BaseModel], ...]
    follow: Callable[[Any, Any], Awaitable[Online]]
