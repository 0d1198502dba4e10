"""One picture a task: a metric over updates for each case, the median of seeds and their range."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.analysis.plots import STYLES, Style
from lab.measured.table import Json
from training.figures import HALF_IN, SMALL_PT, WIDTH_IN, save, subplots

# Norms that one task alone has, in the order it names them.
_OTHERS = (Style("#7b4fa3", "D"), Style("#c2185b", "v"), Style("#8d6e36", "P"))
_MARKS = 5  # of a curve
_TICKS = 5  # of an axis of a small panel
_MANY_COLUMNS = 2
BANDS = "line: median of seeds; shade: their range"
Numbers = NDArray[np.floating[Any]]


def style_of(norm: str, norms: Sequence[str]) -> Style:
    """How a norm is drawn in every picture of the project."""
    if norm in STYLES:
        return STYLES[norm]
    return _OTHERS[[n for n in norms if n not in STYLES].index(norm) % len(_OTHERS)]


def plot(content: Json, image: Path) -> None:
    """A row of panels for each case, one for each plotted metric, from a task's results; of one
    metric, panels side by side. What the panels of a column share is said above the first."""
    metrics = [m for m in content["metrics"] if m["plotted"]]
    shown = [(case, metric) for case in content["cases"] for metric in metrics]
    columns = len(metrics) if len(metrics) > 1 else min(_MANY_COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    small = columns > _MANY_COLUMNS
    figure, grid = subplots(
        rows, columns, (1.7 if small else 2.7) * rows + 0.7, WIDTH_IN if columns > 1 else HALF_IN,
        squeeze=False,
    )  # fmt: skip
    for place, (axes, (case, metric)) in enumerate(zip(grid.flat, shown, strict=False)):
        _panel(axes, content["cases"][case]["norms"], metric)
        axes.set_title(case)
        if small:
            axes.locator_params(nbins=_TICKS)
            axes.set_ylabel("")
            # The metric above its column alone, or no panel would have room.
            axes.set_title(f"{metric['label']}\n{case}" if place < columns else case)
    for axes in grid.flat[max(0, len(shown) - columns) : len(shown)]:
        axes.set_xlabel("updates")
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    finish(figure, grid.flat[0], f"{content['title']} ({BANDS})", image)


def finish(figure: Any, axes: Any, title: str, image: Path) -> None:
    """With a title, and below it all the names that one panel has; written to a file."""
    handles, labels = axes.get_legend_handles_labels()
    figure.suptitle(title, x=0.01, ha="left", fontsize=SMALL_PT + 1, wrap=True)
    figure.legend(handles, labels, ncols=len(labels), loc="outside lower center")
    image.parent.mkdir(parents=True, exist_ok=True)
    save(figure, image)


def draw_curve(axes: Any, found: Json, metric: Json, norm: str, norms: Sequence[str]) -> Numbers:
    """A metric over updates, from what the results have `found` of a norm: the range of the seeds
    that did not diverge, and the median of all, which is returned; one that did is worst in it."""
    x, values = found["updates"], numbers(found["curves"][metric["name"]])  # (seeds, x)
    worst = -math.inf if metric["higher_is_better"] else math.inf
    style, middle = style_of(norm, norms), middle_of(values, worst)
    # Marks of different norms at different places, where curves are one on the other.
    every = -(-len(x) // _MARKS)
    first = list(norms).index(norm) % every
    axes.plot(
        x, middle, color=style.color, marker=style.mark, markevery=(first, every), markersize=5,
        label=norm, linewidth=1.6,
    )  # fmt: skip
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    axes.fill_between(x, low, high, color=style.color, alpha=0.13, linewidth=0)
    return middle


def middle_of(values: Numbers, worst: float) -> Numbers:
    """The median of seeds; one that diverged is worst in it, and where most did it is no number."""
    middle = np.median(np.where(np.isnan(values), worst, values), 0)
    return np.where(np.isfinite(middle), middle, np.nan)


def numbers(values: Sequence[Sequence[float | None]]) -> Numbers:
    """An array of results, in whose files what is no number is null."""
    return np.array([[math.nan if v is None else v for v in row] for row in values])


def _panel(axes: Any, norms: Json, metric: Json) -> None:
    everything = []
    for norm, result in norms.items():
        everything.append(draw_curve(axes, result, metric, norm, list(norms)))
    axes.set_ylabel(metric["label"])
    axes.set_ylim(*_span(np.concatenate(everything), higher=metric["higher_is_better"]))


def _span(values: Any, *, higher: bool) -> tuple[float | None, float | None]:
    """The first updates, and runs that diverge, would squeeze everything of interest."""
    finite = values[np.isfinite(values)]
    if not len(finite) or finite.min() == finite.max():
        return None, None
    best, worst = (finite.max(), np.quantile(finite, 0.1)) if higher else (
        finite.min(), np.quantile(finite, 0.9))  # fmt: skip
    margin = abs(worst - best) * 0.08
    return (worst - margin, best + margin) if higher else (best - margin, worst + margin)
