"""What was measured of speed, beside peers, and which goals were reached."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from lab.measured.table import Json, kept, section, source, table, told

_SIDES = {
    "eager": "PyTorch eager",
    "compile": "`torch.compile`",
    "torchscript": "TorchScript",
    "openvino": "OpenVINO",
    "loop": "Python loop over `step.onnx`",
}
_IN_EIGHT_BITS = {"eager-int8": "PyTorch, dynamic", "openvino-int8": "OpenVINO, NNCF"}
_VARIANTS = {"folded": "folded", "quantized": "folded, in 8 bits"}
SERVERS = {
    "service": "this service",
    "plain": "FastAPI and a PyTorch loop",
    "litserve": "LitServe",
    "litserve-stream": "LitServe, streaming",
    "bentoml": "BentoML",
    "service-int8": "this service, in eight bits",
}


def step(content: Json) -> str:
    """A byte or a pen point at batch 1."""
    rows = {(r["model"], r["threads"], r["side"]): r for r in content["rows"]["step"]}
    head = ("model", "threads", "µs", *_SIDES.values(), "over the floor")
    measured, varied, eight = [], [], []
    for (model, threads, side), row in rows.items():
        name = f"`{model}`", told(threads)
        if side == "served":
            sides = [rows.get((model, threads, other), {}) for other in _SIDES]
            beside = [side.get("ratio_median") for side in sides]  # a side may not be installed
            floor = told(row["over_floor_median"])
            measured.append((*name, told(row["us_median"]), *map(told, beside), floor))
        elif side in _VARIANTS:
            varied.append((*name, _VARIANTS[side], *_variant(row)))
            if side == "quantized":
                eight.append((*name, told(row["us_median"]), *_beside(row, rows, model, threads)))
    lines = [
        (told(r["characters"]), told(r["points"]), told(r["threads"]), told(r["ms_median"]))
        for r in content["rows"]["line"]
    ]
    return section(
        "## One step",
        source(content),
        "The microseconds that one byte or pen point takes at batch 1, sampling included, in "
        "process; then how many times as long other ways to run the same weights take. With the "
        "same noise all of them write the same. Ratios are medians over interleaved rounds. The "
        "floor is the time to read the weights once, at the bandwidth measured in the same rounds. "
        "`lstm-512` is an LN-LSTM of 512 units with random weights.",
        table(head, measured),
        "[Variants](exactness.md#variants-for-speed-when-asked-to) that are made on request:",
        table(("model", "threads", "variant", "µs", "over the floor"), varied),
        "The variant in 8 bits beside peers whose weights are bytes too, and how many times as "
        "long these take. They round inputs in another way, so they write something else:",
        table(("model", "threads", "µs", *_IN_EIGHT_BITS.values()), eight),
        "A line of handwriting in process:",
        table(("characters", "points", "threads", "ms"), lines),
        "![Bars of the time of one step at batch 1, a panel for each model: the floor, this "
        "service, its variants and the peers](results/bench/step.png)",
    )


def _variant(row: Json) -> tuple[str, str]:
    return told(row["us_median"]), told(row["over_floor_median"])


def _beside(mine: Json, rows: Mapping[Any, Json], model: str, threads: int) -> list[str]:
    """How many times as long peers in eight bits take: each in times of the exact artifact, in
    whose rounds they were."""
    peers = [rows.get((model, threads, side)) for side in _IN_EIGHT_BITS]
    mine_s = mine["ratio_median"]
    return [told(None if p is None else round(p["ratio_median"] / mine_s, 2)) for p in peers]


def http(content: Json) -> str:
    """Closed loops of clients."""
    groups: dict[tuple[str, int, bool, str], list[Json]] = {}
    for row in content["rows"]["load"]:
        key = row["target"], row["clients"], row["streamed"], row["lengths"]
        groups.setdefault(key, []).append(row)
    rows = [
        (
            SERVERS.get(target, target),
            told(clients),
            "yes" if streamed else "no",
            "200 bytes" if lengths == "fixed" else lengths,
            *_spreads(repeats),
            told(median(map(_failed_percent, repeats))),
            told(median(r["bytes_per_s"] for r in repeats)),
            told(median(r["goodput_per_s"] for r in repeats)),
        )
        for (target, clients, streamed, lengths), repeats in groups.items()
    ]
    inside: dict[int, list[Json]] = {}
    for row in content["rows"]["in_process"]:
        inside.setdefault(row["rows"], []).append(row)
    in_process = [
        (told(count), *(told(median(r[c] for r in some)) for c in ("ms_median", "bytes_per_s")))
        for count, some in inside.items()
    ]
    return section(
        "## HTTP, clients that wait",
        source(content),
        "Completions of `shakespeare` for clients on the same cores, each of which asks again when "
        "it has its answer; medians over repeats. An answer is good if its first byte came within "
        "50 ms; without streaming the first byte comes with the whole answer. Times are of "
        "requests that were answered: those that failed, which includes those refused, have none.",
        table(
            (
                "server",
                "clients",
                "streamed",
                "length",
                *_SPREADS,
                "failed, %",
                "bytes/s",
                "good a second",
            ),
            rows,
        ),
        "The same completions without HTTP and engine, rows side by side:",
        table(("rows", "ms for 200 bytes", "bytes/s"), in_process),
    )


_SPREADS = ("first byte p50, p99, ms", "all p50, p99, ms")


def _failed_percent(row: Json) -> float:
    failed, total = float(sum(row["errors"].values())), int(row["requests"])
    return 100 * failed / max(1, total)


def _spreads(repeats: Iterable[Json]) -> list[str]:
    """p50 and p99 of the first byte and of all, the medians of repeats; a dash where none came."""
    cells = []
    for column in ("first_byte_ms", "latency_ms"):
        known = [r[column] for r in repeats if r[column] is not None]
        quantiles = [median(spread[q] for spread in known) for q in ("p50", "p99")] if known else []
        cells.append(", ".join(map(told, quantiles)) or "-")
    return cells


def arrivals(content: Json) -> str:
    """Poisson arrivals, which wait for nobody."""
    rows = [
        (
            told(r["rate_per_s"]),
            SERVERS.get(r["target"], r["target"]),
            "yes" if r["streamed"] else "no",
            *_spreads([r]),
            told(r["goodput_per_s"]),
            told(sum(r["errors"].values())),
        )
        for r in content["rows"]["load"]
        if r["loop"] == "open"
    ]
    return section(
        "## HTTP, arrivals that do not wait",
        source(content),
        "Requests for 200-byte completions arrive at random (Poisson), whether or not earlier ones "
        "have been answered. The rates are shares of what the service can do with 32 clients that "
        "wait, for streams and for whole answers each by itself. Servers take turns, each up to "
        "the first rate beyond 120% of what it can do. Latency counts from the moment a request "
        "was meant to be sent; 30 s without an answer is a failure. The bars of the picture are of "
        "the clients that wait in this run, not of the table above.",
        table(
            ("offered a second", "server", "streamed", *_SPREADS, "good a second", "failed"), rows
        ),
        "![Above, time to the whole answer and to the first byte against offered load, at p50 and "
        "p99; below, throughput and goodput with 32 clients that wait](results/bench/http.png)",
    )


def websocket(content: Json) -> str:
    """One step over the wire."""
    columns = ("p50_us", "p90_us", "p99_us")
    rows = [(r["way"], *(told(r[c]) for c in columns)) for r in content["rows"]["online"]]
    return section(
        "## One step over the WebSocket",
        source(content),
        "The time from sending one byte to having 256 log-probabilities, measured by turns with "
        "the same step in process.",
        table(("way", "p50, µs", "p90", "p99"), rows),
    )


def memory(content: Json) -> str:
    """Resident memory and the start."""
    tables = content["rows"]
    rows = [(f"resident, {_names(r)}", f"{told(r['resident_mb'])} MB") for r in tables["resident"]]
    rows += [
        (f"more for 1,000 waiting requests, measured with {told(r['waiting'])}",
         f"{told(r['mb_per_1000_waiting'])} MB") for r in tables["waiting"]
    ]  # fmt: skip
    rows += [
        (f"from start to ready, {_names(r)}", f"{told(r['median_s'])} s") for r in tables["start"]
    ]
    return section("## Memory and start", source(content), table(("what", "measured"), rows))


def _names(row: Json) -> str:
    return " and ".join(f"`{name}`" for name in row["models"])


def training(content: Json) -> str:
    """Whole updates, beside `torch.nn.LSTM`, which has no norm."""
    columns = ("ours_per_s", "lstm_per_s", "naive_per_s", "to_lstm_median", "to_naive_median")
    rows = [
        (told(r["units"]), told(r["threads"]), *(told(r[c]) for c in columns))
        for r in content["rows"]["training"]
    ]
    return section(
        "## Training",
        source(content),
        "Characters a second in whole updates: of our LN-LSTM, of `torch.nn.LSTM` without a norm, "
        "and of a naive loop.",
        table(
            ("units", "threads", "ours", "`nn.LSTM`", "naive", "ours / `nn.LSTM`", "ours / naive"),
            rows,
        ),
    )


def goals(full: Sequence[Json], quick: Sequence[Json]) -> str:
    """Every goal of speed in two runs, each on the machine it was made on."""
    runs = [{g["name"]: g for content in run for g in content["goals"]} for run in (full, quick)]
    rows = [
        (name, goal["compared"], _outcome(goal), _outcome(runs[1].get(name)))
        for name, goal in runs[0].items()
    ]
    missed = sum(goal["met"] is False for goal in runs[0].values())
    return section(
        "## Goals",
        f"Of the goals of speed, **{missed} of {len(rows)}** were missed in the full run "
        "(`make bench-all`), which was made section by section: "
        f"{source(full[0])} The last column is of the short run (`make bench`): "
        f"{source(quick[0])} "
        "[LOG.md](LOG.md#goals-of-speed-that-were-missed) tells what was tried.",
        table(("goal", "what is compared", "`make bench-all`", "`make bench`"), rows),
    )


def _outcome(goal: Json | None) -> str:
    if goal is None or goal["met"] is None:
        return "-"
    value, bound = told(goal["value"]), told(goal["bound"])
    return f"{value} {goal['unit']}, {goal['direction']} {bound}: {kept(goal['met'])}"
