"""The latency that a client sees, live: each model is asked for a little, again and again."""

import time
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from statistics import quantiles
from typing import Any

import httpx
import typer
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from clients.asking import plain
from clients.client import Client
from clients.errors import Refused

_PROBE: dict[str, dict[str, Any]] = {
    "language": {"prompt": "The ", "max_tokens": 48, "temperature": 1},
    "handwriting": {"text": "keel"},
}
_PROBES_KEPT = 1000
_GAUGES = {"evenkeel_requests_running": "running", "evenkeel_requests_waiting": "waiting"}
_NUMBERS = ("first ms p50", "p99", "each us p50", "p99", "running", "waiting", "probes",
            "failed")  # fmt: skip


@dataclass
class Row:
    """What is known of one model: seconds to the first byte or point, and to each after it."""

    name: str
    kind: str
    first_s: deque[float] = field(default_factory=lambda: deque(maxlen=_PROBES_KEPT))
    each_s: deque[float] = field(default_factory=lambda: deque(maxlen=_PROBES_KEPT))
    running: int = 0
    waiting: int = 0
    probes: int = 0
    failed: int = 0
    failure: str = ""

    def probe(self, client: Client) -> None:
        """Ask for a little, and take the time."""
        ask = client.complete if self.kind == "language" else client.write
        self.probes += 1
        began_s, sizes, times_s = time.perf_counter(), [], []
        try:
            for event in ask(model=self.name, **_PROBE[self.kind]):
                if size := _size(event):
                    sizes.append(size)
                    times_s.append(time.perf_counter())
        except (Refused, httpx.TransportError) as error:
            self.failed += 1
            self.failure = str(error) or type(error).__name__
            return
        self.failure = ""  # until then what was known of it stands
        if sizes:
            self.first_s.append(times_s[0] - began_s)
        if len(sizes) > 1:
            self.each_s.append((times_s[-1] - times_s[0]) / sum(sizes[1:]))

    def cells(self) -> list[str]:
        """As they stand in the table."""
        first, each = _percentiles(self.first_s, 1e3), _percentiles(self.each_s, 1e6)
        numbers = (self.running, self.waiting, self.probes, self.failed)
        return [self.name, *first, *each, *map(str, numbers)]


class Watch:
    """All models of a service that write."""

    def __init__(self, client: Client) -> None:
        self._client = client
        models = [model for model in client.models() if model["kind"] in _PROBE]
        self._rows = {model["id"]: Row(model["id"], model["kind"]) for model in models}

    def run(self, rounds: int | None, *, every_s: float) -> bool:
        """Probe until so many rounds or Ctrl-C; whether all was well at the end."""
        console = Console()
        # Where nobody looks on, the table is written once, at the end.
        with Live(self._table(), console=console, auto_refresh=False) as live:
            try:
                for number in count(1):
                    self._look()
                    live.update(self._table(), refresh=console.is_terminal)
                    if number == rounds:
                        break
                    time.sleep(every_s)
            except KeyboardInterrupt:
                pass
        for row in self._rows.values():
            if row.failure:
                typer.echo(plain(f"{row.name}: {row.failure}"), err=True)
        return not any(row.failure for row in self._rows.values())

    def _look(self) -> None:
        for row in self._rows.values():
            row.probe(self._client)
        try:
            told = self._client.ask("GET", "/metrics").content.decode()
            families = list(text_string_to_metric_families(told))
        except (Refused, httpx.TransportError, ValueError):
            return  # the probes have said so
        for family in families:
            for sample in family.samples:
                if (gauge := _GAUGES.get(sample.name)) and sample.labels["model"] in self._rows:
                    setattr(self._rows[sample.labels["model"]], gauge, int(sample.value))

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 1, 0, 0))
        table.add_column("model", no_wrap=True)
        for column in _NUMBERS:
            table.add_column(column, justify="right")
        for row in self._rows.values():
            name, *numbers = row.cells()
            table.add_row(Text(plain(name)), *numbers)  # else brackets in it would be styles
        return table


def _size(event: dict[str, Any]) -> int:
    """Bytes or points of an event."""
    if event.get("choices"):
        return len(event["choices"][0]["text"].encode())
    return len(event.get("points", ()))


def _percentiles(seconds: deque[float], scale: float) -> tuple[str, str]:
    if len(seconds) < 2:
        seen = f"{seconds[0] * scale:.1f}" if seconds else "-"
        return seen, seen
    cuts = quantiles(seconds, n=100, method="inclusive")
    return f"{cuts[49] * scale:.1f}", f"{cuts[98] * scale:.1f}"
