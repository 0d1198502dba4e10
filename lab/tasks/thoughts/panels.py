"""Every probe against updates, as in the paper's figure 3: the norms and two baselines."""

from pathlib import Path

from lab.curves import BANDS, draw_curve, finish
from lab.measured.table import Json
from lab.tasks.thoughts.probes import FIGURES
from training.figures import GREY, subplots

_COLUMNS = 4
_TICKS = 5  # of an axis
_DASHES = {"bag of words": ":", "random encoder": "--"}


def draw(content: Json, image: Path) -> None:
    """A panel for each probe, from the task's results: the median of seeds and their range at each
    checkpoint, which has a part of the set. Baselines have all of it, as the test has."""
    (result,) = content["cases"].values()
    metrics = {metric["name"]: metric for metric in content["metrics"]}
    rows = -(-len(FIGURES) // _COLUMNS)
    figure, grid = subplots(rows, _COLUMNS, 2.1 * rows + 0.7, sharex=True)
    for axes, name in zip(grid.flat, FIGURES, strict=True):
        for norm, found in result["norms"].items():
            draw_curve(axes, found, metrics[name], norm, list(result["norms"]))
        for baseline, figures in result["data"]["probes"].items():
            axes.axhline(
                figures[name], color=GREY, linewidth=1.2, linestyle=_DASHES[baseline],
                label=baseline,
            )  # fmt: skip
        # The words of a label that are before its unit are many for so narrow a panel.
        axes.set_title(metrics[name]["label"].replace(", ", ",\n", 1))
        axes.locator_params(nbins=_TICKS)
    for axes in grid[-1]:
        axes.set_xlabel("updates")
    title = (
        f"probes of {content['title']}, each on a part of its set ({BANDS}); baselines on all of it"
    )
    finish(figure, grid.flat[0], title, image)
