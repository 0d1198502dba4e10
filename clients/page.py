"""A page of ink put together from the events of its stream."""

import base64
import json
from typing import Any

_BYTES = ("png", "pdf")  # which come in base64
_OF_THE_END = ("finish_reason", "legibility", "candidate", "candidates")


class Page:
    """Adds up events; `characters` of them are asked for, and so many have been `written`."""

    def __init__(self, format_: str) -> None:
        self._format = format_
        self._head: dict[str, Any] = {}
        self._lines: list[dict[str, Any]] = []
        self._tail: dict[str, Any] = {}
        self._up = True
        self.characters = 0
        self.written = 0

    @property
    def seed(self) -> int:
        """Of all that is chance in it."""
        return int(self._head["seed"])

    @property
    def unreadable(self) -> list[str]:
        """The texts of lines that are not legible enough."""
        return self._ended("unreadable")

    @property
    def unfinished(self) -> list[str]:
        """The texts of lines that the pen did not come to the end of."""
        return self._ended("length")

    def add(self, event: dict[str, Any]) -> None:
        """The next event."""
        if "lines" in event:
            self._head = {name: told for name, told in event.items() if name != "resume"}
            self._lines = [{"text": text, "strokes": []} for text in event["lines"]]
            self.characters = sum(map(len, event["lines"]))
        elif "line" in event:
            self._draw(event, self._lines[event["line"]])
            before = sum(len(line["text"]) for line in self._lines[: event["line"]])
            self.written = before + event.get("character", 0)
        else:
            self._tail = event
            self.written = self.characters

    def content(self) -> bytes:
        """The drawing, or the page as the service tells a whole one in JSON and how it is drawn."""
        if self._format == "json":
            return json.dumps(self._head | {"lines": self._lines} | self._tail).encode()
        drawing = str(self._tail["drawing"])
        return base64.b64decode(drawing) if self._format in _BYTES else drawing.encode()

    def _ended(self, how: str) -> list[str]:
        return [line["text"] for line in self._lines if line.get("finish_reason") == how]

    def _draw(self, event: dict[str, Any], line: dict[str, Any]) -> None:
        for x, y, up in event.get("points", ()):
            if self._up or not line["strokes"]:
                line["strokes"].append([])
            line["strokes"][-1].append([x, y])
            self._up = up > 0.5
        line |= {name: event[name] for name in _OF_THE_END if name in event}
