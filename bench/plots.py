"""Pictures of a full run: time per step of each way to run a model, and servers under load. Rows
are as they stand in JSON."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullFormatter

from training.figures import DASHED, GREY, SMALL_PT, empty, save, subplots

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
_TITLES = {
    "floor": "floor: a read",
    "served": "Evenkeel, served",
    "loop": "Python, step.onnx",
    "openvino": "OpenVINO",
    "openvino-int8": "OpenVINO, 8 bits",
    "compile": "torch.compile",
    "torchscript": "TorchScript",
    "eager": "PyTorch eager",
    "eager-int8": "PyTorch, 8 bits",
}
_VARIANTS = {"quantized": "folded, 8 bits"}
# Fewer threads, then more: a light and a dark shade.
_OURS = ("#7fc4bb", "#0b7a6f")
_PEERS = ("#d3d6da", "#8f969e")
_FLOOR = ("#f0a35e", "#c8480f")
_BAR = 0.4
_COLUMNS = 2
Look = tuple[str, str, str]  # name, colour and mark
_SERVERS = {
    "service": ("Evenkeel", "#0b7a6f", "o"),
    "service-int8": ("Evenkeel, in eight bits", "#5bb5aa", "P"),
    "litserve": ("LitServe", "#7a5ba8", "s"),
    "litserve-stream": ("LitServe, streaming", "#b497d6", "D"),
    "bentoml": ("BentoML", "#c8480f", "^"),
    "plain": ("FastAPI, PyTorch loop", "#6d747c", "v"),
}
# Of a server that has both ways to answer: where it streams.
_STREAMING = {
    "service": ("Evenkeel, streaming", "#1f5fae", "X"),
    "service-int8": ("Evenkeel, in eight bits, streaming", "#5bb5aa", "P"),
    "plain": ("FastAPI, PyTorch loop, streaming", "#6d747c", "v"),
}
_CLOSED = ("closed", 32, "fixed")
_QUANTILES = ("p50", "p99")
_GOOD_MS = 50


def plot_steps(tables: Tables, folder: Path) -> None:
    """Write `step.png`, a panel per model.

    Bars are medians, one per side and number of threads, labelled with the time and how many times
    that of `served` it is. The floor is hatched, and goes on as a line through the other bars. At
    most two numbers of threads can be told apart.
    """
    rows = tables["step"]
    panels = {r["model"]: [other for other in rows if other["model"] == r["model"]] for r in rows}
    shades = {count: i for i, count in enumerate(sorted({r["threads"] for r in rows}))}
    if len(shades) == 1:
        shades = dict.fromkeys(shades, 1)
    columns = min(_COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    tallest = max(len(_sides(mine)) for mine in panels.values())
    height_in = lines * (0.33 * tallest + 0.6) + 0.8
    figure, table = subplots(lines, columns, height_in, squeeze=False)
    figure.suptitle(
        "One step at batch 1, sampling included: median µs, and how many times that of served.\n"
        "Dashed, the floor: the time to read the weights once.", x=0.01, ha="left",
    )  # fmt: skip
    for axes in table.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (model, mine) in zip(table.flat, panels.items(), strict=False):
        _panel(axes, model, mine, shades)
    handles = []
    for count, shade in shades.items():
        for whose, colours in (("Evenkeel", _OURS), ("others", _PEERS)):
            label = f"{whose}, {count} thread{'s' * (count > 1)}"
            handles.append(Patch(color=colours[shade], label=label))
    _finish(figure, handles, 4, folder / "step.png")


def plot_load(tables: Tables, folder: Path) -> None:
    """Write `http.png`, servers under load.

    Above, latency of the whole answer and time to first byte over the offered load of the open
    loop, a panel for p50 and one for p99; a hollow mark where requests failed, a cross where all
    did. Below, throughput and goodput with 32 clients, the median of repeats, in the better of the
    modes that the section asks a server in. Curves and bars are of whole answers or of streams.
    """
    rows = tables["load"]
    figure = empty(9.4)
    above, below = figure.subfigures(2, 1, height_ratios=(3, 1))  # names of bars are long
    curves, (throughput, goodput) = above.subplots(2, 2, sharey="row"), below.subplots(1, 2)
    above.suptitle("200-byte completions over HTTP, Poisson arrivals", x=0.01, ha="left")
    below.suptitle("The same, 32 clients that wait for each answer", x=0.01, ha="left")
    opened = [r for r in rows if r["loop"] == "open"]
    closed = [r for r in rows if (r["loop"], r["clients"], r["lengths"]) == _CLOSED]
    for place, quantile in enumerate(_QUANTILES):
        _curves(curves[0, place], opened, "latency_ms", quantile, f"Whole answer, {quantile}")
        _curves(curves[1, place], opened, "first_byte_ms", quantile, f"First byte, {quantile}")
        curves[1, place].axhline(_GOOD_MS, color=_FLOOR[0], linewidth=1.5, zorder=1)
    _bars(throughput, closed, "bytes_per_s", "Throughput", "bytes/s")
    _bars(goodput, closed, "goodput_per_s", "Goodput", "requests/s with a first byte in 50 ms")
    _finish(above, _load_legend(_looks(rows)), 4, folder / "http.png")


PICTURES: dict[str, Callable[[Tables, Path], None]] = {"step": plot_steps, "open": plot_load}


def _finish(figure: Figure | SubFigure, handles: Sequence[Any], columns: int, image: Path) -> None:
    """With a legend below it or that part of it; written to a file."""
    figure.legend(handles=handles, fontsize=SMALL_PT, loc="outside lower center", ncols=columns)
    image.parent.mkdir(parents=True, exist_ok=True)
    save(figure.figure, image)


def _sides(rows: Sequence[Row]) -> list[str]:
    """From the top: the floor, served, its variants, then the peers from the fast to the slow."""
    slowest: dict[str, float] = {}
    for row in rows:
        slowest[row["side"]] = max(row["us_median"], slowest.get(row["side"], 0.0))

    def place(side: str) -> tuple[int, float]:
        first = ("floor", "served")
        if side in first:
            return first.index(side), 0.0
        return (3, slowest[side]) if side in _TITLES else (2, 0.0)

    return sorted(slowest, key=place)


def _panel(axes: Axes, model: str, rows: Sequence[Row], shades: Mapping[int, int]) -> None:
    sides = _sides(rows)
    for row in rows:
        place = list(shades).index(row["threads"]) - (len(shades) - 1) / 2
        _bar(axes, row, sides.index(row["side"]) + place * _BAR, shades[row["threads"]])
    axes.set_xlim(0, max(r["us_median"] for r in rows) * 1.6)
    unit = "µs per pen point" if model == "handwriting" else "µs per byte"
    _names(axes, [_name(side) for side in sides])
    _quiet(axes, "x", model, unit)


def _name(side: str) -> str:
    return _TITLES.get(side, f"Evenkeel, {_VARIANTS.get(side, side)}")


def _bar(axes: Axes, row: Row, at: float, shade: int) -> None:
    us, side = row["us_median"], row["side"]
    ours = side == "served" or side not in _TITLES
    look: dict[str, Any] = {"color": (_OURS if ours else _PEERS)[shade]}
    if side == "floor":
        colour = _FLOOR[shade]
        look = {"facecolor": "white", "edgecolor": colour, "hatch": "/////", "linewidth": 0}
        axes.axvline(us, color=colour, linewidth=1.2, linestyle=DASHED, zorder=3)
    axes.barh(at, us, height=_BAR * 0.92, zorder=2, **look)
    times = "" if side == "served" else f"  \N{MULTIPLICATION SIGN}{row['ratio_median']:.2f}"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
    axes.annotate(
        f"{us:.0f} µs{times}", (us, at), (4, 0), textcoords="offset points", va="center",
        fontsize=SMALL_PT, color="#0b5b53" if ours else GREY, bbox=box, zorder=4,
    )  # fmt: skip


def _curves(axes: Axes, rows: Sequence[Row], column: str, quantile: str, title: str) -> None:
    for look in _looks(rows):
        _, colour, mark = look
        mine = sorted((r for r in rows if _look(r) == look), key=lambda r: r["rate_per_s"])
        fine = [r for r in mine if r[column] is not None]
        rates = [r["rate_per_s"] for r in fine]
        values = [r[column][quantile] for r in fine]
        axes.plot(rates, values, color=colour, linewidth=1.6, zorder=2)
        faces = ["white" if r["errors"] else colour for r in fine]
        axes.scatter(rates, values, 34, faces, marker=mark, edgecolors=colour, zorder=3)
        failed = [r["rate_per_s"] for r in mine if r[column] is None]
        top = axes.get_xaxis_transform()
        axes.plot(failed, [0.97] * len(failed), "x", color=colour, transform=top, zorder=3)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("ms from the intended send time", fontsize=SMALL_PT, color=GREY)
    _quiet(axes, "both", title, "offered requests per second")


def _bars(axes: Axes, rows: Sequence[Row], column: str, title: str, unit: str) -> None:
    modes: dict[str, dict[Look, float]] = {}
    for look in _looks(rows):
        mine = [row for row in rows if _look(row) == look]
        median = statistics.median(row[column] for row in mine)
        modes.setdefault(mine[0]["target"], {})[look] = median
    best = dict(max(mode.items(), key=lambda of: of[1]) for mode in modes.values())
    colours = [colour for _, colour, _ in best]
    bars = axes.barh(range(len(best)), list(best.values()), 0.62, color=colours, zorder=2)
    labels = [f"{v:,.0f}" if v >= 100 else f"{v:.1f}" for v in best.values()]
    axes.bar_label(bars, labels, padding=3, fontsize=SMALL_PT, color=GREY)
    axes.set_xlim(0, max([*best.values(), 1e-9]) * 1.3)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _names(axes, [name for name, _, _ in best])
    _quiet(axes, "x", title, unit)


def _names(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.margins(y=0.02)
    axes.invert_yaxis()


def _quiet(axes: Axes, grid: Literal["x", "both"], title: str, unit: str) -> None:
    axes.set_title(title)
    axes.set_xlabel(unit, fontsize=SMALL_PT, color=GREY)
    axes.tick_params(axis="x", colors=GREY)
    axes.grid(axis=grid, color="0.92", zorder=0)
    axes.spines[["left", "bottom"]].set_color("0.75")


def _look(row: Row) -> Look:
    streaming = _STREAMING if row["streamed"] else {}
    return streaming.get(row["target"], _SERVERS[row["target"]])


def _looks(rows: Sequence[Row]) -> list[Look]:
    """Of the rows, each once, as servers are listed; streams after whole answers."""
    seen = {(row["target"], row["streamed"]): _look(row) for row in rows}
    order = [(server, streamed) for server in _SERVERS for streamed in (False, True)]
    return list(dict.fromkeys(seen[place] for place in order if place in seen))


def _load_legend(looks: Sequence[Look]) -> list[Line2D]:
    alone: dict[str, Any] = {"color": GREY, "linestyle": "none"}
    return [
        *(Line2D([], [], color=colour, marker=mark, label=name) for name, colour, mark in looks),
        Line2D([], [], marker="o", markerfacecolor="white", label="some failed", **alone),
        Line2D([], [], marker="x", label="all failed", **alone),
        Line2D([], [], color=_FLOOR[0], label=f"{_GOOD_MS} ms: good"),
    ]
