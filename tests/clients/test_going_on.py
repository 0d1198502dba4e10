"""Text and ink go on over real services, through a `kill -9` and a rolling update, as if nothing
had been."""

import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from clients.client import Client
from tests.service.processes import ready, spawned
from tests.service.serving import eventually

_TEXT = {"model": "letters", "prompt": "RO", "max_tokens": 40_000, "seed": 5}
_INK = {"model": "scrawl", "text": "keep an even keel, " * 20, "seed": 5}


def _told(url: str, series: str) -> float:
    """The sum of a metric over all models."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith(f"evenkeel_{series}{{"))


def _content(events: list[dict[str, Any]]) -> tuple[str, list[Any], list[Any]]:
    """The text, the points with the lines they are on, and what ended."""
    choices = [choice for event in events for choice in event.get("choices", ())]
    points = [(e["line"], *point) for e in events for point in e.get("points", ())]
    parts = [*choices, *events]
    ends = [(p.get("line"), p["finish_reason"]) for p in parts if p.get("finish_reason")]
    return "".join(choice["text"] for choice in choices), points, ends


def test_text_and_ink_go_on_through_a_kill_and_a_rolling_update(inks: Path, url: str) -> None:
    """The third replica, which nothing befalls, is in this process."""
    with ExitStack() as stack:
        unread = {"output": subprocess.DEVNULL, "drain_timeout_s": 0}
        (killed, one), (stopped, two) = (
            stack.enter_context(spawned(inks, **unread)) for _ in range(2)
        )
        assert eventually(lambda: ready(one) and ready(two))
        client = stack.enter_context(Client([one, two, url]))
        streams = [client.complete(**_TEXT), client.write(**_INK)]
        events = [[next(stream) for _ in range(3)] for stream in streams]
        killed.kill()
        for stream, some in zip(streams, events, strict=True):
            while _told(two, "requests_running") == 0:
                some.append(next(stream))
        stopped.send_signal(signal.SIGTERM)
        for stream, some in zip(streams, events, strict=True):
            some += stream
        assert _told(url, "generation_tokens_total") > 0
        undisturbed = stack.enter_context(Client([url]))
        whole = [list(undisturbed.complete(**_TEXT)), list(undisturbed.write(**_INK))]
    for some, expected in zip(events, whole, strict=True):
        assert _content(some) == _content(expected)
