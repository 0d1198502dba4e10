"""Pictures of losses: what is drawn is what the log says, the best of it marked."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from export.convert import provenance, read_source
from tests.training.tiny import SHORT, tiny_recipe
from training import curves
from training.log import LOG
from training.loop import CHECKPOINT
from training.run import carry_out


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    """What was closed, which is what was written."""
    closed: list[Figure] = []
    monkeypatch.setattr(pyplot, "close", closed.append)
    yield closed
    monkeypatch.undo()
    for figure in closed:
        pyplot.close(figure)


def test_the_losses_are_those_of_the_log_and_the_best_is_marked(
    tmp_path: Path, figures: list[Figure]
) -> None:
    told = [(1.0, 3.0, 2.5), (2.0, 2.0, 2.25), (3.0, 1.0, 2.75)]
    names = ("epoch", "train_loss", "validation_loss")
    rows = [dict(zip(names, row, strict=True)) | {"update": 1} for row in told]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    curves.plot_losses(log, tmp_path / "loss.png", "a run of $5", "byte")
    (axes,) = figures[0].axes
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    epochs, training, validation = (list(column) for column in zip(*told, strict=True))
    assert drawn == [(epochs, training), (epochs, validation), ([2.0], [2.25])]
    assert [text.get_text() for text in axes.texts] == ["best: 2.2500"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("epochs", "nats per byte")
    assert axes.get_title("left") == "a run of $5"
    least, most = axes.get_ylim()
    assert least < 1.0 < 2.75 < most  # of training too, which ends below
    assert (tmp_path / "loss.png").stat().st_size > 5000


def test_nothing_is_drawn_of_a_log_without_rows(tmp_path: Path, figures: list[Figure]) -> None:
    (tmp_path / "log.jsonl").write_text("", "utf-8")
    curves.plot_losses(tmp_path / "log.jsonl", tmp_path / "loss.png", "none", "byte")
    assert not figures
    assert not (tmp_path / "loss.png").exists()


def test_a_race_has_in_sight_the_level_and_whatever_is_below_it(
    tmp_path: Path, figures: list[Figure]
) -> None:
    losses = {"none": [(10, 2.5), (20, 2.0)], "layer": [(10, 2.0), (20, 1.0)]}
    curves.plot_race(losses, 2.0, tmp_path / "race.png", "a race")
    (axes,) = figures[0].axes
    none, layer, level = axes.lines
    assert (list(none.get_ydata()), list(layer.get_ydata())) == ([2.5, 2.0], [2.0, 1.0])
    assert list(level.get_ydata()) == [2.0, 2.0]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["norm: none", "norm: layer", "the best of none"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("updates", "nats per point")
    assert len({line.get_color() for line in axes.lines}) == 3
    assert len({line.get_marker() for line in axes.lines}) == 3  # for who cannot tell colours
    least, most = axes.get_ylim()
    assert least < 1.0 < 2.5 < most


def test_errors_of_any_size_are_seen_and_the_curves_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where they coincide, and by who cannot tell colours."""
    drawn: list[Figure] = []
    monkeypatch.setattr(curves, "save", lambda figure, image: drawn.append(figure))
    curves.plot_errors({name: np.array([1e-7, 1e-2]) for name in "abcd"}, Path("e.png"), "it")
    (axes,) = drawn[0].axes
    pyplot.close(drawn[0])
    assert [line.get_label() for line in axes.lines] == list("abcd")
    assert [list(line.get_ydata()) for line in axes.lines] == [[1e-7, 1e-2]] * 4
    kinds = [(line.get_linewidth(), line.get_linestyle()) for line in axes.lines]
    assert len(set(kinds[:3])) == 3
    assert kinds[3] == kinds[0]
    told = axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()
    assert told == ("time step", "largest |output - float64|", "log")


def test_data_may_be_called_anything(tmp_path: Path, figures: list[Figure]) -> None:
    """Also what a plot takes for a formula, and what is no UTF-8."""
    name = "my\udcff$%5$.txt"
    data = tmp_path / name
    data.write_text(SHORT)
    carry_out(tiny_recipe(data, epochs=0.05), tmp_path / "x$^$", "cpu", Path())
    assert (tmp_path / "x$^$" / "loss.png").exists()
    (axes,) = figures[0].axes
    assert axes.get_title("left") == "x$^$ on my\\xff$%5$.txt"
    assert axes.get_ylabel() == "nats per byte"
    told = provenance(read_source(tmp_path / "x$^$")[1])
    assert told["data"]["name"] == name.replace("\udcff", "\\xff")


@pytest.mark.parametrize("place", [".", "runs/.."])
def test_a_run_has_the_name_of_its_folder_however_it_is_written(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: list[Figure]
) -> None:
    data, folder = tmp_path / "text", tmp_path / "mine"
    data.write_text(SHORT)
    (folder / "runs").mkdir(parents=True)
    monkeypatch.chdir(folder)
    carry_out(tiny_recipe(data, epochs=0.05), Path(place), "cpu", Path())
    (axes,) = figures[0].axes
    assert axes.get_title("left") == "mine on text"


def test_a_run_is_not_drawn_where_nothing_can_draw_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends as any other does: what it learned is kept."""
    monkeypatch.setattr("training.run.find_spec", lambda name: None)
    data = tmp_path / "text"
    data.write_text(SHORT)
    carry_out(tiny_recipe(data, epochs=0.05), tmp_path / "run", "cpu", Path())
    assert "not drawn, as there is no matplotlib" in capsys.readouterr().err
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == [CHECKPOINT, LOG]


def test_a_picture_has_an_ending_that_can_be_drawn_in_whatever_letters() -> None:
    for name in (None, "loss", "loss.png", "loss.PNG", "loss.Svg"):
        curves.require_picture(Path(name) if name else None)
    with pytest.raises(ValueError, match=r"^loss\.doc ends with \.doc; it may with .*png"):
        curves.require_picture(Path("loss.doc"))
