"""What the service has to know of a kind of model."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from service.frames import Frame
from service.models import ServedModel
from service.online import Online
from service.state import Edge


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """One kind of model: what is held of each, its routes, and how it is followed online.

    name     the kind, as manifests spell it
    model    the class of its served models
    edge     what lies at the edge of its states
    routers  its routes
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
    opening: type[BaseModel]
    said: type[BaseModel]
    frame: Frame | None = None
    answers: tuple[type[BaseModel], ...]
    follow: Callable[[Any, Any], Awaitable[Online]]
