"""What a test answers in place of the service."""

import json
from collections.abc import Callable
from typing import Any

HEAD: dict[str, Any] = {
    "lines": ["ho"], "width": 600, "height": 128, "color": "#123456", "stroke_width": 2,
    "thinning": 0, "seed": 3, "system_fingerprint": "any", "style": "token",
}  # fmt: skip
USAGE: dict[str, Any] = {"usage": {"characters": 2, "points": 9}}


def ink(points: int) -> dict[str, Any]:
    """A stroke of so many points, 60 of which a pen writes in a second."""
    return {"points": [[i % 500, 60 + i % 7, 0] for i in range(points)], "line": 0, "character": 0}


def stream(*events: dict[str, Any]) -> dict[str, Any]:
    """What a route is fulfilled with: events as the service streams them, to their end."""
    told = [*map(json.dumps, events), "[DONE]"]
    body = "".join(f"data: {event}\n\n" for event in told)
    return {"content_type": "text/event-stream", "body": body}


LOST = 0


def failing(*fates: int) -> tuple[Callable[[Any], None], list[str]]:
    """What a route does with requests, and the addresses that have been asked for: the first have
    a fate each, `LOST` or a status, and those after them are answered."""
    asked: list[str] = []

    def handle(route: Any) -> None:
        asked.append(route.request.url)
        if len(asked) > len(fates):
            route.continue_()
        elif (fate := fates[len(asked) - 1]) == LOST:
            route.abort()
        else:
            route.fulfill(status=fate, body="{}")

    return handle, asked


def listing(change: Callable[[dict[str, Any]], object]) -> Callable[[Any], None]:
    """What a route answers with: the list of models, each changed."""

    def handle(route: Any) -> None:
        told = route.fetch().json()
        for model in told["data"]:
            change(model)
        route.fulfill(json=told)

    return handle


def unready(model: dict[str, Any]) -> None:
    """As it is before its attestation."""
    model |= {"attestation": None, "ready": False}
