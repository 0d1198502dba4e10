"""Pictures of the analysis: what lies on one another is told apart."""

from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from lab.analysis import plots
from lab.analysis.growth import Growth
from tests.training.legible import LEAST_PX, smallest_letters_px


def test_norms_of_one_curve_are_named_on_it_together_and_each_has_marks(
    saved: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "_SCALES", [0.5, 2.0])
    plots.plot_curvature(Path("none.png"))
    left, right = saved[0].axes
    assert [text.get_text() for text in left.texts] == ["layer, batch and weight", "none"]
    assert [text.get_text() for text in right.texts] == ["layer and batch", "weight and none"]
    assert left.get_ylabel() == "Fisher information, times"  # of both, which share it
    told = [(axes.get_xlabel(), axes.get_title("left")) for axes in (left, right)]
    assert told == [
        ("norm of w, times", "A fixed step in the weight vector w"),
        ("scale of the inputs, times", "A fixed step in the gain (none: along w)"),
    ]
    for axes in (left, right):
        marks = {str(line.get_label()): line.get_marker() for line in axes.lines}
        assert marks == {norm: style.mark for norm, style in plots.STYLES.items()}
    marked = [line.get_markevery() for line in left.lines]
    assert marked == [(0, 3), (1, 3), (2, 3), (0, 1)]
    assert smallest_letters_px(saved[0]) >= LEAST_PX


def test_a_small_gain_is_dashed_and_each_lstm_has_a_line(saved: list[Figure]) -> None:
    runs = ("layer", 1.0), ("batch", 0.1), ("weight", None), ("none", None)
    steps = torch.arange(1.0, 41.0)
    found = [Growth(norm, gain, steps, 1 / steps) for norm, gain in runs]
    plots.plot_growth(found, Path("none.png"))
    for axes in saved[0].axes:
        styles = {str(line.get_label()): line.get_linestyle() for line in axes.lines}
        assert styles == {"layer, gain 1": "-", "batch, gain 0.1": "--", "weight": "-", "none": ":"}
        assert [line.get_color() for line in axes.lines] == [plots.STYLES[n].color for n, _ in runs]
    for axes, curve in zip(saved[0].axes, (steps, 1 / steps), strict=True):
        shown = axes.lines[0].get_xdata()
        assert list(shown) == [1, 21]  # steps are counted from 1
        assert list(axes.lines[0].get_ydata()) == curve[[0, 20]].tolist()
    left, right = saved[0].axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("time step", "norm of h")
    of_gradients = "norm of the gradient in (h, c)"
    assert (right.get_xlabel(), right.get_ylabel()) == ("time step", of_gradients)
    assert (left.get_title("left"), right.get_title("left")) == (
        "Hidden state, forwards",
        "Gradient of a loss at the last step, backwards",
    )
    told = [text.get_text() for text in saved[0].legends[0].get_texts()]
    assert told == [growth.label for growth in found]
    assert smallest_letters_px(saved[0]) >= LEAST_PX
