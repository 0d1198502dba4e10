"""Pictures of the measurements: time per step of each way to run a model, servers under load."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter

Row = Mapping[str, Any]
_TITLES = {
    "floor": "floor: weights read once",
    "served": "Evenkeel, served",
    "loop": "onnxruntime, step loop",
    "openvino": "OpenVINO, step loop",
    "compile": "torch.compile",
    "torchscript": "TorchScript",
    "eager": "PyTorch eager",
}
# Fewer threads, then more: a light and a dark shade.
_OURS = ("#7fc4bb", "#0b7a6f")
_PEERS = ("#d3d6da", "#8f969e")
_FLOOR = ("#f0a35e", "#c8480f")
_BAR = 0.4
_COLUMNS = 3
# Name, colour and mark of each server.
_SERVERS = {
    "service": ("Evenkeel", "#0b7a6f", "o"),
    "litserve": ("LitServe", "#7a5ba8", "s"),
    "litserve-stream": ("LitServe, streaming", "#b497d6", "D"),
    "bentoml": ("BentoML", "#c8480f", "^"),
    "plain": ("FastAPI + PyTorch", "#6d747c", "v"),
}
_MANY = 32


def plot_steps(rows: Sequence[Row], image: Path) -> None:
    """Write an image with a panel per model, from `StepRow`s as they stand in JSON.

    Bars are medians, one per side and number of threads, labelled with the time and how many times
    that of `served` it is. The floor is hatched, and goes on as a line through the other bars. At
    most two numbers of threads can be told apart.
    """
    models = list(dict.fromkeys(r["model"] for r in rows))
    threads = sorted({r["threads"] for r in rows})
    columns = min(_COLUMNS, len(models))
    lines = -(-len(models) // columns)
    tallest = max(len(_sides([r for r in rows if r["model"] == m])) for m in models)
    size = (5.4 * columns, lines * (0.5 * tallest + 0.9) + 0.7)
    figure, table = pyplot.subplots(
        lines, columns, figsize=size, dpi=110, squeeze=False, layout="constrained"
    )
    for axes, model in zip(table.flat, models, strict=False):
        _panel(axes, model, [r for r in rows if r["model"] == model], threads)
    for axes in table.flat[len(models) :]:
        axes.set_axis_off()
    title = "One step at batch 1, sampling included: median µs, and how many times that of served"
    figure.suptitle(title, fontsize=13, fontweight="bold")
    _legend(figure, threads)
    image.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(image)
    pyplot.close(figure)


def _sides(rows: Sequence[Row]) -> list[str]:
    """From the top: the floor, served, its variants, then the peers from the fast to the slow."""
    slowest: dict[str, float] = {}
    for row in rows:
        slowest[row["side"]] = max(row["us_median"], slowest.get(row["side"], 0.0))
    variants = [side for side in slowest if side not in _TITLES]
    peers = [side for side in slowest if side in _TITLES and side not in ("floor", "served")]
    first = [side for side in ("floor", "served") if side in slowest]
    return [*first, *variants, *sorted(peers, key=slowest.__getitem__)]


def _panel(axes: Axes, model: str, rows: Sequence[Row], threads: Sequence[int]) -> None:
    sides = _sides(rows)
    longest = max(r["us_median"] for r in rows)
    for row in rows:
        place = threads.index(row["threads"]) - (len(threads) - 1) / 2
        _bar(axes, row, sides.index(row["side"]) + place * _BAR, _shade(row["threads"], threads))
    titles = [_TITLES.get(side, f"Evenkeel, {side}") for side in sides]
    axes.set_yticks(range(len(sides)), titles, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, longest * 1.36)
    axes.set_title(model, loc="left", fontsize=11, fontweight="bold")
    unit = "pen point" if model == "handwriting" else "byte"
    axes.set_xlabel(f"µs per {unit}", fontsize=9, color="0.35")
    axes.tick_params(axis="x", labelsize=8, colors="0.35")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="0.92", zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("0.75")


def _bar(axes: Axes, row: Row, at: float, shade: int) -> None:
    us, side = row["us_median"], row["side"]
    ours = side == "served" or side not in _TITLES
    if side == "floor":
        look: dict[str, Any] = {
            "facecolor": "white",
            "edgecolor": _FLOOR[shade],
            "hatch": "/////",
            "linewidth": 0,
        }
        axes.axvline(us, color=_FLOOR[shade], linewidth=1.2, linestyle=(0, (4, 2)), zorder=3)
    else:
        look = {"color": (_OURS if ours else _PEERS)[shade]}
    axes.barh(at, us, height=_BAR * 0.92, zorder=2, **look)
    times = "" if side == "served" else f"  \N{MULTIPLICATION SIGN}{row['ratio_median']:.2f}"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
    axes.annotate(
        f"{us:.0f} µs{times}", (us, at), (4, 0), textcoords="offset points", va="center",
        fontsize=8, color="#0b5b53" if ours else "0.3", bbox=box, zorder=4,
    )  # fmt: skip


def _legend(figure: Figure, threads: Sequence[int]) -> None:
    handles = []
    for count in threads:
        shade = _shade(count, threads)
        plural = "thread" if count == 1 else "threads"
        handles.append(Patch(color=_OURS[shade], label=f"Evenkeel, {count} {plural}"))
        handles.append(Patch(color=_PEERS[shade], label=f"others, {count} {plural}"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=9, frameon=False)


def _shade(count: int, threads: Sequence[int]) -> int:
    return 1 if len(threads) == 1 else threads.index(count)


def plot_load(rows: Sequence[Row], image: Path) -> None:
    """Write an image of servers under load, from `LoadRow`s as they stand in JSON.

    Above, latency of the whole answer and time to first byte over the offered load of the open
    loop: p50 drawn through, p99 dashed; a hollow mark where requests failed, a cross where all did.
    Below, throughput and goodput with 32 clients, the median of repeats, in each server's better
    mode.
    """
    figure, table = pyplot.subplots(2, 2, figsize=(12.4, 8.4), dpi=110, layout="constrained")
    opened = [r for r in rows if r["loop"] == "open"]
    _curves(table[0, 0], opened, "latency_ms", "Whole answer")
    _curves(table[0, 1], opened, "first_byte_ms", "First byte")
    table[0, 1].axhline(50, color=_FLOOR[0], linewidth=1, zorder=1)
    closed = [r for r in rows if (r["loop"], r["clients"], r["lengths"]) == _closed_loop()]
    _bars(table[1, 0], closed, "bytes_per_s", "Throughput, 32 clients", "bytes/s")
    _bars(
        table[1, 1],
        closed,
        "goodput_per_s",
        "Goodput, 32 clients",
        "requests/s, first byte in 50 ms",
    )
    title = "200-byte completions over HTTP: Poisson arrivals above, a closed loop below"
    figure.suptitle(title, fontsize=13, fontweight="bold")
    _load_legend(figure, {r["target"] for r in rows})
    image.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(image)
    pyplot.close(figure)


def _closed_loop() -> tuple[str, int, str]:
    return "closed", _MANY, "fixed"


def _curves(axes: Axes, rows: Sequence[Row], column: str, title: str) -> None:
    for server, (_, colour, mark) in _SERVERS.items():
        mine = sorted((r for r in rows if r["target"] == server), key=lambda r: r["rate_per_s"])
        fine = [r for r in mine if r[column] is not None]
        rates = [r["rate_per_s"] for r in fine]
        for quantile, style in (("p50", "-"), ("p99", (0, (4, 2)))):
            values = [r[column][quantile] for r in fine]
            axes.plot(rates, values, color=colour, linestyle=style, linewidth=1.6, zorder=2)
            for row, value in zip(fine, values, strict=True):
                face = "white" if row["errors"] else colour
                axes.plot(
                    row["rate_per_s"], value, mark, color=colour, markerfacecolor=face,
                    markersize=5.5, zorder=3,
                )  # fmt: skip
        for row in mine:
            if row[column] is None:
                place = axes.get_xaxis_transform()
                axes.plot(row["rate_per_s"], 0.97, "x", color=colour, transform=place, zorder=3)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(left=0)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel("offered requests per second", fontsize=9, color="0.35")
    axes.set_ylabel("ms from the intended send time", fontsize=9, color="0.35")
    _quiet(axes, "both")


def _bars(axes: Axes, rows: Sequence[Row], column: str, title: str, unit: str) -> None:
    best: dict[str, float] = {}
    for server in _SERVERS:
        for streamed in (False, True):
            mode = (server, streamed)
            values = [r[column] for r in rows if (r["target"], r["streamed"]) == mode]
            if values:
                best[server] = max(best.get(server, 0.0), statistics.median(values))
    for at, (server, value) in enumerate(best.items()):
        axes.barh(at, value, height=0.62, color=_SERVERS[server][1], zorder=2)
        axes.annotate(
            f"{value:,.0f}" if value >= 100 else f"{value:.1f}", (value, at), (5, 0),
            textcoords="offset points", va="center", fontsize=9, color="0.25",
        )  # fmt: skip
    axes.set_yticks(range(len(best)), [_SERVERS[server][0] for server in best], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, max([*best.values(), 1e-9]) * 1.15)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel(unit, fontsize=9, color="0.35")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(axis="y", length=0)
    _quiet(axes, "x")


def _quiet(axes: Axes, grid: Literal["x", "both"]) -> None:
    axes.tick_params(axis="x", labelsize=8, colors="0.35")
    axes.grid(axis=grid, color="0.92", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("0.75")


def _load_legend(figure: Figure, targets: Collection[str]) -> None:
    handles = [
        Line2D([], [], color=colour, marker=mark, label=name)
        for server, (name, colour, mark) in _SERVERS.items()
        if server in targets
    ]
    handles.append(Line2D([], [], color="0.4", label="p50"))
    handles.append(Line2D([], [], color="0.4", linestyle=(0, (4, 2)), label="p99"))
    hollow = {"color": "0.4", "linestyle": "none"}
    handles.append(
        Line2D([], [], marker="o", markerfacecolor="white", label="some failed", **hollow)
    )
    handles.append(Line2D([], [], marker="x", label="all failed", **hollow))
    handles.append(Line2D([], [], color=_FLOOR[0], label="50 ms"))
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=9, frameon=False)
