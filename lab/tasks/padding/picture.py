"""Accuracy over the share of padding, and how far padding moves a row: from a task's results."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from lab.curves import color_of
from training.curves import pyplot

_LEAST_MOVED = 1e-9  # where 0 is drawn on a logarithmic axis


def draw(folder: Path) -> None:
    """`padding-share.png`, of the `padding.json` beside it: medians of seeds and their range."""
    cases = json.loads((folder / "padding.json").read_text())["cases"].values()
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.4), dpi=90, layout="constrained")
    norms = list(next(iter(cases))["norms"])
    for norm in norms:
        tests = [case["norms"][norm]["test"] for case in cases]
        share = [test["padding"]["median"] for test in tests]
        accuracy = 100 - _seeds(tests, "error")  # (cases, seeds)
        moved = np.maximum(_seeds(tests, "moved in training"), _LEAST_MOVED)
        for axes, values in zip(panels, (accuracy, moved), strict=True):
            color = color_of(norm, norms)
            axes.plot(share, np.median(values, 1), "o-", color=color, label=norm)
            axes.fill_between(share, values.min(1), values.max(1), color=color, alpha=0.2)
    panels[0].set_ylabel("accuracy on the test sentences, %")
    panels[1].set_ylabel("a row's logits beside others,\nrelative to alone, in training")
    panels[1].set_yscale("log")
    for axes in panels:
        axes.set_xlabel("positions of a training batch that are padding, %")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    figure.savefig(folder / "padding-share.png", pil_kwargs={"optimize": True})
    pyplot.close(figure)


def _seeds(tests: list[Any], name: str) -> Any:
    values = [[np.nan if v is None else v for v in test[name]["seeds"]] for test in tests]
    return np.array(values, dtype=float)
