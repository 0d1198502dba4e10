"""What each goal compares, found in the rows of a run: what was measured, and its reference.

Rows come as they stand in JSON, in tables by name; where they were not measured there is no pair.
Repeated measurements of the same thing count by their median.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.in_process import ROWS
from bench.peers.launch import PEERS
from bench.servers import ALONE, MANY, SERVICE

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
Pair = tuple[float, float]
_MIB = 1 << 20


def step(
    column: str, side: str, units: int, threads: int | None, *, faster: bool = False
) -> Callable[[Tables], Pair | None]:
    """A column of a side's row at this size; the worst if any number of threads will do.

    `faster`: the column is a time over that of served, and the goal says how many times faster.
    """

    def find(tables: Tables) -> Pair | None:
        values = [
            1 / row[column] if faster else row[column]
            for row in tables.get("step", ())
            if row["model"] == f"lstm-{units}"
            and row["side"] == side
            and threads in (None, row["threads"])
            and row[column] is not None
        ]
        if not values:
            return None
        higher_is_better = column == "ratio_median"
        return (min(values) if higher_is_better else max(values)), 1.0

    return find


def _load(
    tables: Tables, target: str, clients: int, streamed: bool, of: Callable[[Row], float | None]
) -> float | None:
    """The median over the repeats of a closed loop of 200-byte completions."""
    values = [
        of(row)
        for row in tables.get("load", ())
        if (row["target"], row["loop"], row["clients"]) == (target, "closed", clients)
        and (row["streamed"], row["lengths"]) == (streamed, "fixed")
    ]
    known = [value for value in values if value is not None]
    # A repeat in which nothing succeeded is no reason to count the others alone.
    return statistics.median(known) if known and len(known) == len(values) else None


def _column(name: str, quantile: str | None = None) -> Callable[[Row], float | None]:
    """A column of a row, or a percentile of a spread in it, which may be missing."""

    def of(row: Row) -> float | None:
        if quantile is None:
            return float(row[name])
        return None if row[name] is None else float(row[name][quantile])

    return of


def _in_process(tables: Tables, rows: int, column: str) -> float | None:
    values = [row[column] for row in tables.get("in_process", ()) if row["rows"] == rows]
    return statistics.median(values) if values else None


def completion(tables: Tables) -> Pair | None:
    """The p50 of one client, in ms, and the time in process."""
    ours = _load(tables, SERVICE, ALONE, False, _column("latency_ms", "p50"))
    return _pair(ours, _in_process(tables, ALONE, "ms_median"))


def beside_plain(tables: Tables) -> Pair | None:
    """Bytes per second of the service and of the plain peer, whole answers."""
    bytes_per_s = _column("bytes_per_s")
    ours, plain = (_load(tables, name, MANY, False, bytes_per_s) for name in (SERVICE, PEERS[0]))
    return _pair(ours, plain)


def goodput(tables: Tables) -> Pair | None:
    """Of the service and of the best peer, each in the better of its modes; None before every peer
    was measured."""
    best = {name: _best_goodput(tables, name) for name in (SERVICE, *PEERS)}
    peers = [best[name] for name in PEERS]
    if best[SERVICE] is None or None in peers:
        return None
    return best[SERVICE], max(p for p in peers if p is not None)


def _best_goodput(tables: Tables, name: str) -> float | None:
    column = _column("goodput_per_s")
    modes = [_load(tables, name, MANY, streamed, column) for streamed in (False, True)]
    return max((mode for mode in modes if mode is not None), default=None)


def of_the_session(tables: Tables) -> Pair | None:
    """Bytes per second of the service, whole answers, and of 32 rows in process."""
    ours = _load(tables, SERVICE, MANY, False, _column("bytes_per_s"))
    return _pair(ours, _in_process(tables, ROWS, "bytes_per_s"))


def first_byte(tables: Tables) -> Pair | None:
    """p99 and p50 of the time to first byte, in ms."""
    p99, p50 = (
        _load(tables, SERVICE, MANY, True, _column("first_byte_ms", quantile))
        for quantile in ("p99", "p50")
    )
    return _pair(p99, p50)


def online(tables: Tables) -> Pair | None:
    """The p50 of a step over the WebSocket and in process, in ms."""
    ms = {row["way"]: row["p50_us"] / 1e3 for row in tables.get("online", ())}
    return _pair(ms.get("websocket"), ms.get("in process"))


def training(tables: Tables) -> Pair | None:
    """The worst ratio to `torch.nn.LSTM`, of all sizes and numbers of threads."""
    ratios = [row["to_lstm_median"] for row in tables.get("training", ())]
    return (min(ratios), 1.0) if ratios else None


def start(tables: Tables) -> Pair | None:
    """Seconds from start to ready."""
    rows = tables.get("start", ())
    return (rows[0]["median_s"], 1.0) if rows else None


def resident(tables: Tables) -> Pair | None:
    """MiB of the process that holds most."""
    rows = tables.get("resident", ())
    return (max(row["resident_mb"] for row in rows) * 1e6 / _MIB, 1.0) if rows else None


def _pair(value: float | None, reference: float | None) -> Pair | None:
    return None if value is None or reference is None else (value, reference)
