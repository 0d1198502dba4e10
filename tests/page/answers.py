"""What a test answers in place of the service."""

import json
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
