"""Ink of the laboratory: a text, its seed and its place decide it, nobody beside it."""

from pathlib import Path

import numpy as np
import pytest

from lab.legibility.write_ink import Pen, write
from service.artifact import load_artifact
from service.ink.model import stored_hands

_SHIPPED = Path(__file__).parents[2] / "artifacts" / "handwriting"


def test_the_same_text_at_the_same_place_is_the_same_ink_in_any_company() -> None:
    (alone,) = write(_SHIPPED, ["at"], bias=1.0, seed=1)
    first, other, again = write(_SHIPPED, ["at", "it is", "at"], bias=1.0, seed=1)
    assert first.offsets.tobytes() == alone.offsets.tobytes()
    assert first.ended
    assert len(other.offsets) > len(first.offsets) > 5
    assert again.offsets.tobytes() != first.offsets.tobytes()
    (another,) = write(_SHIPPED, ["at"], bias=1.0, seed=2)
    assert another.offsets.tobytes() != alone.offsets.tobytes()
    assert np.isfinite(first.offsets).all()
    assert set(np.unique(first.offsets[:, 2])) <= {0.0, 1.0}


def test_every_point_has_the_place_in_its_own_text_where_the_window_was() -> None:
    pen = Pen(_SHIPPED)
    hands = stored_hands(load_artifact(_SHIPPED), pen.manifest)
    for ink in pen.write(["even keel"] * 2, 1.0, 1, [pen.fresh(), hands["ben"]]):
        assert len(ink.characters) == len(ink.drawn)
        written = ink.characters[: len(ink.offsets)]
        assert (written[0], written[-1]) == (0, 8)
        assert np.diff(written).min() >= 0
        assert set(written) == set(range(9))


@pytest.mark.parametrize("text", ["", "x" * 64])
def test_a_text_that_does_not_fit_the_window_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 63 fit"):
        write(_SHIPPED, [text], bias=1.0, seed=1)


def test_a_reader_is_no_pen() -> None:
    with pytest.raises(ValueError, match="reader is of kind reader"):
        Pen(_SHIPPED.with_name("reader"))
