"""The picture of the probes of `thoughts`, from what its results have."""

import json
from pathlib import Path

from matplotlib.figure import Figure

from lab.experiment import load
from lab.tasks.thoughts.probes import FIGURES
from tests.training.legible import LEAST_PX, smallest_letters_px

_RESULTS = Path(__file__).parents[3] / "docs" / "results" / "lab" / "thoughts.json"


def test_every_probe_has_a_panel_with_each_norm_and_each_baseline(saved: list[Figure]) -> None:
    content = json.loads(_RESULTS.read_text("utf-8"))
    (result,) = content["cases"].values()
    load("thoughts").picture(None, _RESULTS.parent)
    (figure,) = saved
    panels = figure.axes
    labels = {metric["name"]: metric["label"] for metric in content["metrics"]}
    told = [axes.get_title("left").replace("\n", " ") for axes in panels]
    assert told == [labels[name] for name in FIGURES]
    assert {axes.get_xlabel() for axes in panels[-4:]} == {"updates"}  # of the lowest
    baselines = result["data"]["probes"]
    for axes, name in zip(panels, FIGURES, strict=True):
        *drawn, bag, untrained = axes.lines
        assert [line.get_label() for line in drawn] == list(result["norms"])
        levels = {str(line.get_label()): line.get_ydata()[0] for line in (bag, untrained)}  # type: ignore[index]
        assert levels == {baseline: values[name] for baseline, values in baselines.items()}
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [*result["norms"], *baselines]
    assert smallest_letters_px(figure) >= LEAST_PX
