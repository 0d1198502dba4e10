"""One picture a task: a metric over updates for each case, the median of seeds and their range."""

import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.analysis.plots import STYLES, save
from lab.measured.table import Json
from training.curves import pyplot

# Norms that one task alone has, in the order it names them.
_OTHERS = ("#7b4fa3", "#c2185b", "#8d6e36")
_NARROW = 34  # characters
_DPI = 90
_SMALL_DPI, _MANY_PANELS = 75, 12  # of one with more panels, which the page could not have else
Numbers = NDArray[np.floating[Any]]


def color_of(norm: str, norms: Sequence[str]) -> str:
    """The color of a norm in every picture of the project."""
    if norm in STYLES:
        return STYLES[norm].color
    return _OTHERS[[n for n in norms if n not in STYLES].index(norm) % len(_OTHERS)]


def plot(content: Json, image: Path) -> None:
    """A row of panels for each case, one for each plotted metric, from a task's results."""
    metrics = [m for m in content["metrics"] if m["plotted"]]
    cases = content["cases"]
    dpi = _DPI if len(cases) * len(metrics) <= _MANY_PANELS else _SMALL_DPI
    figure, grid = pyplot.subplots(
        len(cases), len(metrics), figsize=(4.6 * len(metrics) + 1, 3.3 * len(cases)), dpi=dpi,
        layout="constrained", squeeze=False,
    )  # fmt: skip
    for row, (case, result) in zip(grid, cases.items(), strict=True):
        for axes, metric in zip(row, metrics, strict=True):
            _panel(axes, result["norms"], metric)
            axes.set_title(case)
    for axes in grid[-1]:
        axes.set_xlabel("updates")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside right upper")
    title = f"{content['title']}: median and range of seeds"
    # Beside the legend, one panel is narrow.
    figure.suptitle(title if len(metrics) > 1 else fill(title, _NARROW), fontsize=10)
    image.parent.mkdir(parents=True, exist_ok=True)
    save(figure, image)


def draw_curve(axes: Any, found: Json, metric: str, norm: str, norms: Sequence[str]) -> Numbers:
    """A metric over updates, from what the results have `found` of a norm; the median drawn."""
    return draw_seeds(axes, found["updates"], numbers(found["curves"][metric]), norm, norms)


def draw_seeds(
    axes: Any, x: Sequence[float], values: Numbers, norm: str, norms: Sequence[str], line: str = "-"
) -> Numbers:
    """Values `(seeds, x)` as their median, which is returned, and their range."""
    color, middle = color_of(norm, norms), np.median(values, 0)
    axes.plot(x, middle, line, color=color, label=norm, linewidth=1.8)
    axes.fill_between(x, values.min(0), values.max(0), color=color, alpha=0.2, linewidth=0)
    return middle


def numbers(values: Sequence[Sequence[float | None]]) -> Numbers:
    """An array of results, in whose files what is no number is null."""
    return np.array([[math.nan if v is None else v for v in row] for row in values])


def _panel(axes: Any, norms: Json, metric: Json) -> None:
    everything = []
    for norm, result in norms.items():
        everything.append(draw_curve(axes, result, metric["name"], norm, list(norms)))
    axes.set_ylabel(metric["label"])
    axes.set_ylim(*_span(np.concatenate(everything), higher=metric["higher_is_better"]))
    axes.spines[["top", "right"]].set_visible(False)


def _span(values: Any, *, higher: bool) -> tuple[float | None, float | None]:
    """The first updates, and runs that diverge, would squeeze everything of interest."""
    finite = values[np.isfinite(values)]
    if not len(finite) or finite.min() == finite.max():
        return None, None
    best, worst = (finite.max(), np.quantile(finite, 0.1)) if higher else (
        finite.min(), np.quantile(finite, 0.9))  # fmt: skip
    margin = abs(worst - best) * 0.08
    return (worst - margin, best + margin) if higher else (best - margin, worst + margin)
