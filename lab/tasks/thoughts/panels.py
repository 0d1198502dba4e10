"""Every probe against updates, as in the paper's figure 3: the norms and two baselines."""

from pathlib import Path

from lab.analysis.plots import save
from lab.curves import draw_curve
from lab.measured.table import Json
from lab.tasks.thoughts.probes import FIGURES
from training.curves import pyplot

_COLUMNS = 4
_DPI = 80
_DASHES = {"bag of words": ":", "random encoder": "--"}


def draw(content: Json, image: Path) -> None:
    """A panel for each probe, from the task's results: the median of seeds and their range at each
    checkpoint, which has a part of the set. Baselines have all of it, as the test has."""
    (result,) = content["cases"].values()
    labels = {metric["name"]: metric["label"] for metric in content["metrics"]}
    rows = -(-len(FIGURES) // _COLUMNS)
    figure, grid = pyplot.subplots(
        rows, _COLUMNS, figsize=(3.4 * _COLUMNS, 2.8 * rows), dpi=_DPI, layout="constrained"
    )
    for axes, name in zip(grid.flat, FIGURES, strict=True):
        for norm, found in result["norms"].items():
            draw_curve(axes, found, name, norm, list(result["norms"]))
        for baseline, figures in result["data"]["probes"].items():
            axes.axhline(figures[name], color="grey", linestyle=_DASHES[baseline], label=baseline)
        axes.set_title(labels[name], fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("updates")
    figure.suptitle("curves: a part of each set, while training; lines: all of it", fontsize=9)
    handles, names = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, ncols=len(names), loc="outside lower center")
    save(figure, image)
