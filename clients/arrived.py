"""What has arrived of an answer: the request for the rest of it, and what of that is new."""

from collections import Counter
from typing import Any

from clients.errors import Refused

Event = dict[str, Any]


class Arrived:
    """Counts the characters of each choice, or the points of each line.

    Characters count from where `request()` begins, points from the beginning of their line, as
    the service repeats them. What no token goes on from, several choices or a drawing, is asked
    for again from its beginning, and comes again the same.
    """

    def __init__(self, body: dict[str, Any]) -> None:
        if body.get("logprobs") is not None:
            raise ValueError("log-probabilities cannot be gone on with after a cut")
        one = body.get("n", 1) == 1 and isinstance(body.get("prompt", ""), str)
        as_json = body.get("format") in (None, "json")
        self._body = body | {"resume": one and as_json}
        self._fingerprint: str | None = None
        self._have: Counter[int] = Counter()
        self._seen: Counter[int] = Counter()  # of them, since `request()`
        self._known: set[tuple[str, int]] = set()

    def request(self) -> dict[str, Any]:
        """What to ask for now; it may repeat what has arrived."""
        self._seen.clear()
        return self._body

    @property
    def ended(self) -> bool:
        """Whether the end of anything has arrived, of a choice, a line or a page."""
        return any(what in ("end", "tail") for what, _ in self._known)

    def new(self, event: Event) -> Event | None:
        """An event without what had arrived before it. Raises the error it tells of."""
        self._check_model(event.get("system_fingerprint"))
        if "model" in event:  # where none was named, another replica may choose another one
            self._body.setdefault("model", event["model"])
        part = event["choices"][0] if event.get("choices") else event
        # One that tells of an error has no content, and is not the tail of a page.
        fresh = "error" not in event and self._is_new(part)
        # Who did not ask for it is told as well when a service stops: of one choice, or one line.
        if "resume" in part and self._body["resume"]:
            self._body |= part["resume"]
            if "first_line" not in part["resume"]:
                self._have.subtract(self._seen)
                self._seen.clear()
        if "error" in event:
            raise Refused.by(event)
        return event if fresh else None

    def _is_new(self, part: Event) -> bool:
        """Whether any of a choice or a line, or its end, had not arrived before; what had is taken
        out of it."""
        number = part.get("index", part.get("line"))
        if number is None:
            return self._first("head" if "lines" in part else "tail")
        name = "text" if "text" in part else "points"
        content = part.get(name, "")
        known = self._have[number] - self._seen[number]
        self._seen[number] += len(content)
        self._have[number] += len(content[known:])
        if content:
            part[name] = content[known:]
        ends = part.get("finish_reason") is not None and self._first("end", number)
        return bool(content[known:]) or ends

    def _first(self, what: str, number: int = 0) -> bool:
        first = (what, number) not in self._known
        self._known.add((what, number))
        return first

    def _check_model(self, fingerprint: str | None) -> None:
        if fingerprint is None:
            return
        if self._body.get("state_policy") == "close":
            fingerprint = fingerprint.partition("-")[0]  # without the runtime: the files alone
        self._fingerprint = self._fingerprint or fingerprint
        if fingerprint != self._fingerprint:
            raise Refused(f"the model changed on the way, {self._fingerprint} to {fingerprint}")
