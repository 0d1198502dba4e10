"""The analysis as pictures: table 1, curvature and magnitude, and 2,000 steps of six LSTMs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from lab.analysis.fisher import (
    GLMKind,
    blocks,
    data_scaled,
    magnitude_curvature,
    weights_scaled,
)
from lab.analysis.growth import Growth
from lab.analysis.invariance import (
    KINDS,
    LEAST_IF_NOT,
    MOST_IF_INVARIANT,
    Entry,
    random_network,
)
from training.figures import DASHED, save, subplots

_EVERY = 20  # more of 2,000 steps than the eye can part
_SCALES = [2.0**n for n in range(-3, 4)]


@dataclass(frozen=True, slots=True)
class Style:
    """How a normalisation is drawn in every picture: the mark tells it where the color does not."""

    color: str
    mark: str


STYLES: dict[GLMKind, Style] = {
    "layer": Style("#4c9be8", "o"),
    "batch": Style("#d95f02", "s"),
    "weight": Style("#1b7837", "^"),
    "none": Style("black", "x"),
}


def plot_table(entries: Sequence[Entry], image: Path) -> None:
    """Table 1 with the measured change of the output in each cell."""
    figure, axes = subplots(1, 1, 4.2)
    changes = list(dict.fromkeys(e.change for e in entries))
    for entry in entries:
        column, row = KINDS.index(entry.norm), changes.index(entry.change)
        color = "#cfe8cf" if entry.invariant else "#f3d3cf"
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=color, edgecolor="white"))
        bound = entry.most if entry.invariant else entry.least
        text = f"{'invariant' if entry.invariant else 'changes'}\n{bound:.0e}"
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center")
    axes.set(xlim=(0, len(KINDS)), ylim=(len(changes), 0))
    axes.set_xticks([i + 0.5 for i in range(len(KINDS))], [f"{kind} norm" for kind in KINDS])
    axes.set_yticks([i + 0.5 for i in range(len(changes))], changes)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(
        "relative change of the output: the largest of all networks where invariant "
        f"(below {MOST_IF_INVARIANT:.0e}),\n"
        f"the smallest where it changes (above {LEAST_IF_NOT:.0e})"
    )
    save(figure, image)


def plot_curvature(image: Path) -> None:
    """Curvature of a step in a weight vector over its norm, and of the gain over the inputs'."""
    figure, (left, right) = subplots(1, 2, 3.8, sharey=True)
    network = random_network(0)
    vectors, gains = {}, {}
    for kind in STYLES:
        base, unscaled = blocks(kind, network).vector, magnitude_curvature(kind, network)
        scaled = [(weights_scaled(kind, network, s), data_scaled(network, s)) for s in _SCALES]
        vectors[kind] = [blocks(kind, weights).vector / base for weights, _ in scaled]
        gains[kind] = [magnitude_curvature(kind, data) / unscaled for _, data in scaled]
    left.set(
        xlabel="norm of w, times",
        ylabel="Fisher information, times",
        title="A fixed step in the weight vector w",
    )
    right.set(
        xlabel="scale of the inputs, times",
        title="A fixed step in the gain (none: along w)",
    )
    for axes, curves in ((left, vectors), (right, gains)):
        _equal_as_one(axes, curves)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.grid(color="0.92")
    save(figure, image)


def plot_growth(results: Sequence[Growth], image: Path) -> None:
    """Norm of the hidden state forwards, norm of the gradient backwards."""
    figure, (left, right) = subplots(1, 2, 4.2)
    for result in results:
        # Batch and layer norm at a small gain have one hidden state, weight norm and none all in
        # one: the wide below the narrow, and lines below dashes.
        width = 3.0 if result.norm in ("batch", "weight") else 1.2
        dashes = ":" if result.norm == "none" else DASHED if _is_small(result) else "-"
        for axes, curve in ((left, result.hidden), (right, result.gradient)):
            steps = range(1, len(curve) + 1, _EVERY)
            axes.plot(
                steps, curve[::_EVERY].tolist(), label=result.label, linestyle=dashes,
                color=STYLES[result.norm].color, linewidth=width, zorder=5 - width,
            )  # fmt: skip
    left.set(xlabel="time step", ylabel="norm of h", title="Hidden state, forwards")
    left.set_ylim(bottom=0)
    right.set(
        xlabel="time step",
        ylabel="norm of the gradient in (h, c)",
        title="Gradient of a loss at the last step, backwards",
        yscale="log",
    )
    right.set_yticks([10.0**power for power in range(-80, 61, 20)])
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, loc="outside lower center", handlelength=3.5)
    save(figure, image)


def _is_small(result: Growth) -> bool:
    return result.gain is not None and result.gain < 1


def _equal_as_one(axes: Axes, curves: dict[GLMKind, list[float]]) -> None:
    """Norms whose curves are equal as one line, with their names on it and the marks of each in
    turn."""
    left = dict(curves)
    while left:
        first = next(iter(left.values()))
        alike = [
            kind for kind, curve in left.items()
            if all(isclose(a, b, rel_tol=1e-6) for a, b in zip(first, curve, strict=True))
        ]  # fmt: skip
        for place, kind in enumerate(alike):
            style = STYLES[kind]
            axes.plot(
                _SCALES, left.pop(kind), "-", color=style.color, marker=style.mark, markersize=7,
                markevery=(place, len(alike)), linewidth=1.5 * (len(alike) - place), label=kind,
            )  # fmt: skip
        names = " and ".join(filter(None, (", ".join(alike[:-1]), alike[-1])))
        rises = first[-1] > first[0] * 1.01
        axes.annotate(
            names, (_SCALES[1], first[1]), (12, -4 if rises else 9), textcoords="offset points",
            va="top" if rises else "bottom",
        )  # fmt: skip
