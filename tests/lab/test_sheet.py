"""The contact sheet of lines that were read: whose ink is where, and what is told of it."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot

from lab.legibility import sheet
from lab.legibility.sheet import Shown, plot_legibility

_REAL = np.array([[1, 0, 0], [9, 2, 0], [1, -1, 1]], np.float32)
_GENERATED = np.array([[1, 0, 0], [2, 9, 1]], np.float32)


def test_a_sheet_shows_people_on_the_left_and_has_room_for_every_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, kept = [], []
    real_picture = sheet.picture
    monkeypatch.setattr(sheet, "picture", lambda ink: drawn.append(ink) or real_picture(ink))
    monkeypatch.setattr(pyplot, "close", kept.append)
    heights = []
    for lines in (1, 4):
        shown = Shown("keel", _REAL, _GENERATED, "keel", "kell$")
        plot_legibility([shown] * lines, tmp_path / "sheet.png")
        heights.append(len(pyplot.imread(tmp_path / "sheet.png")))
    monkeypatch.undo()
    told = [axes.get_title(loc="left") for axes in kept[0].axes]
    pyplot.close("all")
    assert told == ["'keel'\nread 'keel', CER 0.00", "'keel'\nread 'kell$', CER 0.50"]
    assert drawn[0] is _REAL
    assert drawn[1] is _GENERATED
    assert heights[1] > 2.5 * heights[0]
