"""Pictures: what comes of more than the service can do, and memory over a long time. Rows are as
they stand in JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
_OURS, _OTHER, _BAD = "#0b7a6f", "#7a5ba8", "#c8480f"
_LIMIT: dict[str, Any] = {"color": "0.6", "linestyle": (0, (4, 2)), "linewidth": 1}


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One line of a panel: `(seconds since the first, value)`."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """A panel of the dashboard with the answers to its questions."""

    title: str
    type: str
    unit: str
    place: tuple[int, int, int, int]  # x, y, w and h, of 24 columns
    series: Sequence[Series]


def plot_overload(tables: Tables, image: Path) -> None:
    """Answers a second, and times at p99, over how much was offered."""
    rows = tables.get("overload") or tables.get("beside", ())
    shares = [row["times_capacity"] for row in rows]
    figure, (rates, times) = _figure(2)
    for column, label, colour in (
        ("offered_per_s", "offered", "0.7"),
        ("answered_per_s", "answered", _OTHER),
        ("good_per_s", "good", _OURS),
    ):
        rates.plot(shares, [row[column] for row in rows], "o-", color=colour, label=label)
    for column, label, colour in (
        ("whole_ms", "whole answer", _OTHER),
        ("first_ms", "first byte", _OURS),
        ("refusal_ms", "refusal", _BAD),
    ):
        known = [row for row in rows if row[column] is not None]
        times.plot(
            [row["times_capacity"] for row in known], [row[column]["p99"] for row in known],
            "o-", color=colour, label=label,
        )  # fmt: skip
    for limit in (5, 50, 2000):
        times.axhline(limit, **_LIMIT)
    times.set_yscale("log")
    for axes, title in ((rates, "requests a second"), (times, "ms, p99")):
        axes.set_xlabel("times capacity")
        _finish(axes, title)
    _save(figure, image)


def plot_soak(tables: Tables, image: Path) -> None:
    """Resident memory, threads and files."""
    samples = tables["samples"]
    minutes = [sample["minute"] for sample in samples]
    figure, panels = _figure(2)
    panels[0].plot(minutes, [sample["resident_mb"] for sample in samples], color=_OURS)
    panels[0].set_ylim(bottom=0)
    for column, colour in (("files", _OTHER), ("threads", _OURS)):
        panels[1].plot(minutes, [s[column] for s in samples], color=colour, label=column)
    for axes, title in zip(panels, ("resident memory, MB", "how many"), strict=True):
        axes.set_xlabel("minutes")
        _finish(axes, title)
    _save(figure, image)


def plot_board(panels: Sequence[Panel], image: Path) -> None:
    """The panels where the dashboard has them: numbers as they were last, and lines."""
    rows = max(panel.place[1] + panel.place[3] for panel in panels)
    figure = pyplot.figure(figsize=(15, 0.55 * rows), dpi=90, layout="constrained")
    grid = figure.add_gridspec(rows, 24)
    for panel in panels:
        x, y, w, h = panel.place
        axes = figure.add_subplot(grid[y : y + h, x : x + w])
        shown = [series for series in panel.series if series.points]
        if panel.type == "stat":
            last = [f"{_with_unit(s.points[-1][1], panel.unit)}  {s.name}" for s in shown]
            axes.set_axis_off()
            axes.text(0, 0.5, "\n".join(last), fontsize=10, color=_OURS, va="center")
            axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold")
            continue
        for series in shown:
            axes.plot(*zip(*series.points, strict=True), label=series.name, linewidth=1.2)
        axes.set_xlabel("seconds", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.set_ylim(bottom=0)
        title = f"{panel.title}, {panel.unit}" if panel.unit != "none" else panel.title
        _finish(axes, title, legend_size=6)
    _save(figure, image)


def _with_unit(value: float, unit: str) -> str:
    match unit:
        case "percentunit":
            return f"{value:.0%}"
        case "s":
            return f"{value * 1e3:.0f} ms"
        case _:
            return f"{value:g}"


PICTURES = {"overload": plot_overload, "soak": plot_soak}


def _figure(columns: int) -> tuple[Any, Any]:
    return pyplot.subplots(1, columns, figsize=(5 * columns, 3.6), dpi=110, layout="constrained")


def _finish(axes: Any, title: str, legend_size: int = 9) -> None:
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=legend_size)


def _save(figure: Any, image: Path) -> None:
    figure.savefig(image)
    pyplot.close(figure)
