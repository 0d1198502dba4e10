"""What a load measurement says: one outcome per request, and the row that sums many of them up.

Latency and time to first byte count from the moment a request was meant to be sent, so a stall of
the server is charged to every request that it delayed (no coordinated omission).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Literal

import numpy as np

GOOD_FIRST_BYTE_MS = 50.0
SAMPLES_FOR_P999 = 10_000
OK = "200"
Lengths = Literal["fixed", "mixed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request. Times are seconds of one clock; `status` is the HTTP status or the failure.

    `gaps_s` are seconds per byte between streamed events: the time from one event to the next over
    the bytes in the later one. Nothing is said of the first event, whose time is `first_byte_s`.
    """

    intended_s: float
    first_byte_s: float
    ended_s: float
    bytes_written: int
    status: str = OK
    gaps_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles in ms by nearest rank; `p999` is None below 10,000 samples."""

    p50: float
    p90: float
    p99: float
    p999: float | None
    samples: int


@dataclass(frozen=True, slots=True)
class Load:
    """What was asked of a target: `clients` in a closed loop, `rate_per_s` (arrivals) in an open
    one."""

    target: str
    loop: str
    clients: int | None
    rate_per_s: float | None
    streamed: bool
    lengths: Lengths


@dataclass(frozen=True, slots=True)
class LoadRow(Load):
    """One measurement of one target.

    Spreads are of the requests meant to be sent within the window; rates are of those that ended
    within it, whenever they began. `goodput_per_s` counts those whose first byte came within 50 ms.
    `errors` counts failures by status. `client_cores` is the processor time of this driver per
    second: what it took from the server on a shared machine. No spread is given where nothing was
    measured.
    """

    seconds: float
    requests: int
    errors: dict[str, int]
    requests_per_s: float
    goodput_per_s: float
    bytes_per_s: float
    latency_ms: Spread | None
    first_byte_ms: Spread | None
    gap_ms_per_byte: Spread | None
    client_cores: float

    def line(self) -> str:
        """One line for people."""
        load = f"{self.clients} clients" if self.clients else f"{self.rate_per_s:g}/s"
        mode = "streamed" if self.streamed else "whole"
        parts = [f"{self.target:16}{load:>12} {mode:9}{self.lengths:9}{self.requests:6} requests"]
        for name, spread in (("latency", self.latency_ms), ("first byte", self.first_byte_ms)):
            if spread is not None:
                parts.append(f"{name} {spread.p50:.1f}/{spread.p90:.1f}/{spread.p99:.1f} ms")
        parts.append(f"{self.bytes_per_s:,.0f} bytes/s, good {self.goodput_per_s:.1f}/s")
        parts.append(f"errors {self.errors or 'none'}, client {self.client_cores:.2f} cores")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Window:
    """The seconds that count, from the end of the warm-up to the end of the load."""

    begin_s: float
    end_s: float

    def holds(self, moment_s: float) -> bool:
        """Whether a moment counts."""
        return self.begin_s <= moment_s < self.end_s


def percentiles(samples: Iterable[float], *parts: float, digits: int) -> list[float]:
    """By nearest rank: the least sample that so large a part of them does not exceed."""
    found = np.quantile(np.array(list(samples)), parts, method="inverted_cdf")
    return [round(float(value), digits) for value in found]


def spread(seconds: Iterable[float]) -> Spread | None:
    """Percentiles of samples given in seconds; None if there are none."""
    ms = [s * 1e3 for s in seconds]
    if not ms:
        return None
    p50, p90, p99, p999 = percentiles(ms, 0.5, 0.9, 0.99, 0.999, digits=3)
    return Spread(p50, p90, p99, p999 if len(ms) >= SAMPLES_FOR_P999 else None, len(ms))


def summarise(
    load: Load, outcomes: Sequence[Outcome], window: Window, client_cores: float
) -> LoadRow:
    """The row of all outcomes of one measurement; a failed request has no latency."""
    seconds = window.end_s - window.begin_s
    meant = [o for o in outcomes if window.holds(o.intended_s)]
    fine = [o for o in meant if o.status == OK]
    ended = [o for o in outcomes if o.status == OK and window.holds(o.ended_s)]
    good = [o for o in ended if (o.first_byte_s - o.intended_s) * 1e3 <= GOOD_FIRST_BYTE_MS]
    return LoadRow(
        *astuple(load),
        seconds=round(seconds, 3),
        requests=len(meant),
        errors=dict(Counter(o.status for o in meant if o.status != OK)),
        requests_per_s=round(len(ended) / seconds, 2),
        goodput_per_s=round(len(good) / seconds, 2),
        bytes_per_s=round(sum(o.bytes_written for o in ended) / seconds, 1),
        latency_ms=spread(o.ended_s - o.intended_s for o in fine),
        first_byte_ms=spread(o.first_byte_s - o.intended_s for o in fine),
        gap_ms_per_byte=spread(gap for o in fine for gap in o.gaps_s),
        client_cores=round(client_cores, 3),
    )
