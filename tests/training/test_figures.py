"""One look for all pictures of figures: letters can be read where pictures are shown."""

from pathlib import Path

import pytest
from matplotlib import pyplot
from PIL import Image

from tests.training.legible import LEAST_PX, SHOWN_PX, smallest_letters_px
from training.figures import save, subplots

_RESULTS = Path(__file__).parents[2] / "docs" / "results"
# Drawn before pictures had one look. Each wants a run to be drawn again: of the models' parity, of
# an analysis that no two machines end alike, of a load that Prometheus watches.
_OLD = {"parity-handwriting.png", "parity-shakespeare.png", "growth.png", "board.png"}


def test_a_figure_is_no_wider_than_it_is_shown_and_can_be_read(tmp_path: Path) -> None:
    figure, (left, right) = subplots(1, 2, 3.0)
    left.set(xlabel="updates", title="a panel")
    right.plot([1, 2], label="a line")
    right.legend()
    assert smallest_letters_px(figure) >= LEAST_PX
    save(figure, tmp_path / "a.PNG")
    with Image.open(tmp_path / "a.PNG") as image:
        assert image.width == SHOWN_PX
        assert image.mode == "P"
    assert not pyplot.fignum_exists(figure.number)


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_a_figure_is_of_the_kind_that_was_asked_for(tmp_path: Path, ending: str) -> None:
    figure, _ = subplots(1, 1, 2.0)
    save(figure, tmp_path / f"a.{ending}")
    told = {"svg": b"<svg", "pdf": b"%PDF"}
    assert told[ending] in (tmp_path / f"a.{ending}").read_bytes()[:1000]


def test_recorded_pictures_are_shown_as_large_as_they_are() -> None:
    widths = {}
    for path in _RESULTS.rglob("*.png"):
        with Image.open(path) as image:
            widths[path.name] = image.width
    assert widths.keys() > _OLD
    assert {n: w for n, w in widths.items() if w > SHOWN_PX and n not in _OLD} == {}
