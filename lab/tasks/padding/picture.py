"""Accuracy over the share of padding, and how far padding moves a row: from a task's results."""

import json
from pathlib import Path

import numpy as np

from lab.curves import finish, middle_of, numbers, style_of
from training.figures import subplots

_LEAST_MOVED = 1e-9  # where 0 is drawn on a logarithmic axis
_APART = 1.6  # of the bars of two norms at one share, in %


def draw(folder: Path) -> None:
    """`padding-share.png`, of the `padding.json` beside it: medians of seeds and their range.
    One that diverged is worst in the median, and not in the range."""
    cases = json.loads((folder / "padding.json").read_text("utf-8"))["cases"].values()
    figure, panels = subplots(1, 2, 3.8)
    norms = list(next(iter(cases))["norms"])
    for place, norm in enumerate(norms):
        style, aside = style_of(norm, norms), _APART * (place - (len(norms) - 1) / 2)
        tests = [case["norms"][norm]["test"] for case in cases]
        (share,) = numbers([[test["padding"]["median"] for test in tests]])
        error, moved = (
            numbers([test[name]["seeds"] for test in tests]).T  # (seeds, cases)
            for name in ("error", "moved in training")
        )
        shown = 100 - error, np.maximum(moved, _LEAST_MOVED)
        for axes, values, worst in zip(panels, shown, (-np.inf, np.inf), strict=True):
            middle = middle_of(values, worst)
            reach = middle - np.fmin.reduce(values), np.fmax.reduce(values) - middle
            axes.errorbar(
                share + aside, middle, reach, color=style.color, marker=style.mark, markersize=5,
                linewidth=1.2, elinewidth=1.6, capsize=2, label=norm,
            )  # fmt: skip
    panels[0].set_ylabel("accuracy on the test sentences, %")
    panels[1].set_ylabel("a row's logits beside others,\nrelative to alone, in training")
    panels[1].set_yscale("log")
    for axes in panels:
        axes.set_xlabel("positions of a training batch that are padding, %")
    title = "self-attention over padded sentences (mark: median of seeds; bar: their range)"
    finish(figure, panels[0], title, folder / "padding-share.png")
