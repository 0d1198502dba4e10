"""What the service is asked for here, of either kind, and what comes of it.

Times are of `time.perf_counter`. An answer is compared as a list, of characters or of points: where
a stream is cut into events is nobody's business.
"""

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from bench.rows import OK
from bench.target import MODEL, PROMPT

LEFT = "left"
REFUSED = "503"
_PATIENCE_S = 60.0
# The service lets one address have 500 connections, and closes one that is idle for 5 s.
_CONNECTIONS, _KEEP_S = 450, 2.0
_FIRST = re.compile(rb'"(text|points)": ')
_END = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A request but for its seed."""

    name: str
    model: str
    path: str
    body: Mapping[str, Any]

    def asked(self, seed: int, *, stream: bool = True) -> dict[str, Any]:
        """The body of the request."""
        return {"model": self.model, **self.body, "seed": seed, "stream": stream}


TEXT = Work("text", MODEL, "/v1/completions", {"prompt": PROMPT, "max_tokens": 128})
INK = Work("ink", "handwriting", "/v1/handwriting", {"text": "an even keel"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`status` is that of HTTP, or what went wrong after a 200; `first_s` is when the first
    character or point was there."""

    status: str
    intended_s: float
    sent_s: float
    first_s: float
    ended_s: float
    retry_after_s: str | None = None
    content: Sequence[Any] = ()


def connect(address: str = "127.0.0.1") -> ClientSession:
    """Connections of a caller at an address of this machine."""
    connector = TCPConnector(limit=_CONNECTIONS, keepalive_timeout=_KEEP_S, local_addr=(address, 0))
    return ClientSession(connector=connector, timeout=ClientTimeout(total=_PATIENCE_S))


async def ask(
    session: ClientSession, url: str, work: Work, seed: int, *, streamed: bool = True,
    intended_s: float | None = None, leaves: bool = False,
) -> Reply:  # fmt: skip
    """One answer; whoever `leaves` does so as soon as it begins. Failures are told, not raised."""
    sent_s = time.perf_counter()
    first_s: float | None = None
    raw, retry_after_s = b"", None
    body = work.asked(seed, stream=streamed)
    try:
        async with session.post(url + work.path, json=body) as response:
            status = str(response.status)
            retry_after_s = response.headers.get("Retry-After")
            async for chunk in response.content.iter_any():
                raw += chunk
                if first_s is None and _FIRST.search(raw):
                    first_s = time.perf_counter()
                    if leaves:
                        status = LEFT
                        break
    except (ClientError, OSError, TimeoutError) as error:
        status = type(error).__name__
    ended_s = time.perf_counter()
    content: Sequence[Any] = ()
    if status == OK and streamed:
        status, content = _read(raw)
    return Reply(
        status=status, intended_s=intended_s or sent_s, sent_s=sent_s, first_s=first_s or ended_s,
        ended_s=ended_s, retry_after_s=retry_after_s, content=content,
    )  # fmt: skip


def content_of(events: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The characters or points of the events of an answer."""
    found: list[Any] = []
    for event in events:
        for part in event.get("choices") or [event]:
            found.extend(part.get("text") or part.get("points") or [])
    return found


def _read(raw: bytes) -> tuple[str, list[Any]]:
    """How a stream ended, and what was in it."""
    events = [json.loads(data) for data in re.findall(rb"^data: (\{.*)$", raw, re.M)]
    failed = [event["error"]["code"] for event in events if "error" in event]
    if failed:
        return str(failed[0]), []
    return (OK, content_of(events)) if raw.endswith(_END) else ("cut", [])
