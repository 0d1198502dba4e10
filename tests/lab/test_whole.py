"""A picture, or a list, appears whole: whoever is interrupted while one is made leaves that before
it.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torch import nn

from lab import plots
from lab.glyphs.sheet import Sample, plot_glyphs
from lab.glyphs.sheet import Shown as Glyph
from lab.legibility.held_out import write_list
from lab.legibility.page_sheet import plot_pages
from lab.legibility.sheet import Shown, plot_legibility
from lab.tasks.draw.pictures import save_decoder
from training.figures import save, subplots
from training.ink.line import Line
from training.ink.sheet import plot_sheet

_INK = np.array([[1, 0, 0], [9, 2, 0], [1, -1, 1]], np.float32)
_GLYPH = Glyph("a", 1.0, [Sample(_INK.astype(float), np.ones(3, bool))])
_LINE = Line("keel", (_INK[:, :2].astype(float),), "a writer", "a file", 100.0)
_DECODER: Any = SimpleNamespace(model=SimpleNamespace(decoder=nn.Linear(2, 2)))
_WRITERS: dict[str, Callable[[Path], None]] = {
    "figure.png": lambda file: save(subplots(1, 1, 2.0)[0], file),
    "figure.svg": lambda file: save(subplots(1, 1, 2.0)[0], file),
    "glyphs.png": lambda file: plot_glyphs([_GLYPH], file),
    "legibility.png": lambda file: plot_legibility([Shown("k", _INK, _INK, "k", "k")], file),
    "pages.png": lambda file: plot_pages([[_INK]], file),
    "lines.png": lambda file: plot_sheet([_LINE], file, title="lines"),
    "decoder.safetensors": lambda file: save_decoder(_DECODER, file),
    "lines.txt": lambda file: write_list(["a line"], file),
}


@pytest.mark.parametrize("name", _WRITERS)
def test_a_file_is_what_it_was_until_the_next_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Ctrl-C at the last moment, when all of it has been drawn."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    file = tmp_path / name
    file.write_bytes(b"before")
    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _WRITERS[name](file)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert file.read_bytes() == b"before"


def test_a_picture_without_an_ending_is_a_png_where_it_was_asked_for(tmp_path: Path) -> None:
    save(subplots(1, 1, 2.0)[0], tmp_path / "figure")
    assert [path.name for path in tmp_path.iterdir()] == ["figure"]
    with Image.open(tmp_path / "figure") as image:
        assert image.format == "PNG"


def test_the_page_has_all_pictures_of_before_until_it_has_all_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C when one is copied."""
    folder = tmp_path / plots.RESULTS / "analysis"
    folder.mkdir(parents=True)
    for name in plots._ANALYSIS:
        (folder / f"{name}.png").write_bytes(b"before")
    plots.publish(tmp_path)
    before = {path.name for path in (tmp_path / plots.SHOWN).iterdir()}
    whole, copied = shutil.copyfile, list[Path]()

    def copy(source: Path, to: Path) -> None:
        if copied:
            raise KeyboardInterrupt
        copied.append(whole(source, to))

    monkeypatch.setattr(shutil, "copyfile", copy)
    with pytest.raises(KeyboardInterrupt):
        plots.publish(tmp_path)
    assert {path.name for path in (tmp_path / plots.SHOWN).iterdir()} == before
    assert list((tmp_path / plots.SHOWN).parent.iterdir()) == [tmp_path / plots.SHOWN]
