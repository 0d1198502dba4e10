"""Accuracy over the share of padding, and how far padding moves a row: from a task's results."""

import json
from pathlib import Path

import numpy as np

from lab.analysis.plots import save
from lab.curves import draw_seeds, numbers
from training.curves import pyplot

_LEAST_MOVED = 1e-9  # where 0 is drawn on a logarithmic axis


def draw(folder: Path) -> None:
    """`padding-share.png`, of the `padding.json` beside it: medians of seeds and their range."""
    cases = json.loads((folder / "padding.json").read_text("utf-8"))["cases"].values()
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.4), dpi=90, layout="constrained")
    norms = list(next(iter(cases))["norms"])
    for norm in norms:
        tests = [case["norms"][norm]["test"] for case in cases]
        (share,) = numbers([[test["padding"]["median"] for test in tests]])
        error, moved = (
            numbers([test[name]["seeds"] for test in tests]).T  # (seeds, cases)
            for name in ("error", "moved in training")
        )
        shown = 100 - error, np.maximum(moved, _LEAST_MOVED)
        for axes, values in zip(panels, shown, strict=True):
            draw_seeds(axes, share, values, norm, norms, "o-")
    panels[0].set_ylabel("accuracy on the test sentences, %")
    panels[1].set_ylabel("a row's logits beside others,\nrelative to alone, in training")
    panels[1].set_yscale("log")
    for axes in panels:
        axes.set_xlabel("positions of a training batch that are padding, %")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    save(figure, folder / "padding-share.png")
