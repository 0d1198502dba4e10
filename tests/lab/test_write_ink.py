"""Ink of the laboratory: a text, its seed and its place decide it, nobody beside it."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from contract.golden import Arrays
from lab.legibility import write_ink
from lab.legibility.write_ink import Pen, write
from service.artifact import load_artifact
from service.ink.line import InkEdge
from service.ink.model import stored_hands
from service.state import Moment

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


def test_each_text_is_written_in_its_own_hand_and_noise_whatever_it_is_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Texts of about one length are written together."""

    def rows(_: Pen, lines: Any, bias: float, noise: Any, further: int) -> list[Any]:
        seeds = [generator.bit_generator.seed_seq.entropy for generator in noise]
        return [(*line, *seed) for line, seed in zip(lines, seeds, strict=True)]

    monkeypatch.setattr(write_ink, "ROWS", 2)
    monkeypatch.setattr(Pen, "_rows", rows)
    pen, texts = object.__new__(Pen), ["as long as it is", "a", "some", "be"]
    hands: Any = ["ada", "ben", "cleo", "dora"]
    written: Any = pen.write(texts, 1.0, 7, hands)
    assert written == [(*pair, 7, n) for n, pair in enumerate(zip(texts, hands, strict=True))]


def test_no_draw_of_the_noise_is_0_or_1() -> None:
    class Ends:
        """Draws the least and the most of what there is."""

        def integers(self, low: int, high: int, count: int) -> np.ndarray:
            return np.resize([low, high - 1], count)

        def standard_normal(self, shape: tuple[int, int], kind: type) -> np.ndarray:
            return np.zeros(shape, kind)

    noise: Any = [Ends()]
    uniform = write_ink._steps(noise)["uniform"]
    assert 0 < uniform.min() < uniform.max() < 1


def test_a_text_that_ends_at_its_limit_was_cut_off() -> None:
    line: Any = ("ab", Moment({}, 0, 0, 0, InkEdge()))
    drawn = np.tile(np.array([[1, 0, 0]], np.float32), (9, 1))
    past, places = drawn[:, 0] < 0, np.zeros(9, int)
    for end, ended, points in ((4, True, 4), (5, False, 5), (None, False, 5)):
        found = write_ink._cut(line, drawn, past, places, end, limit=5)
        assert (found.ended, len(found.offsets)) == (ended, points)


class _Graph:
    """Draws a step to the right, and is past its text in these steps."""

    def __init__(self, *past: int) -> None:
        self._past, self._steps = past, 0

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        count, rows = steps["uniform"].shape
        at = np.arange(self._steps, self._steps + count)
        self._steps += count
        ended = np.stack([np.isin(at, self._past)] * rows, axis=1)
        drawn = np.full((count, rows, 3), 3, np.float32)
        return state, {"ended": ended, "drawn": drawn, "character": np.zeros((count, rows), int)}


def _pen(graph: _Graph, monkeypatch: pytest.MonkeyPatch) -> tuple[Pen, list[float]]:
    """A pen on this graph, and at which bias it is asked for rows."""
    pen, biases = object.__new__(Pen), list[float]()

    def row(text: str, edge: InkEdge, manifest: object, bias: float) -> Arrays:
        biases.append(bias)
        return {}

    monkeypatch.setattr(write_ink, "row_of", row)
    pen.manifest, pen._graph = cast(Any, None), cast(Any, graph)
    return pen, biases


def test_a_text_has_as_many_points_as_its_own_length_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pen, biases = _pen(_Graph(), monkeypatch)
    hand = Moment({}, 0, 0, 0, InkEdge())
    short, long = pen.write(["a", "abc"], 0.5, 1, [hand, hand])
    assert [(w.ended, len(w.offsets)) for w in (short, long)] == [(False, 140), (False, 220)]
    assert biases == [0.5, 0.5]


def test_what_is_drawn_goes_on_beyond_the_end_of_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for further in (0, 90):
        pen, _ = _pen(_Graph(*range(40, 400)), monkeypatch)
        (ink,) = pen.write(["abc"], 0.5, 1, [Moment({}, 0, 0, 0, InkEdge())], further)
        assert (ink.ended, len(ink.offsets)) == (True, 40)
        assert np.flatnonzero(ink.past).tolist() == [*range(40, len(ink.drawn))]
        assert 0 <= len(ink.drawn) - (len(ink.offsets) + further) < write_ink.CHUNK_STEPS


def test_a_line_goes_on_at_the_height_and_with_the_character_where_its_hand_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pen = Pen(_SHIPPED)
    (ink,) = pen.write(["at"], 1.0, 1)
    first = pen.hand_after(pen.fresh(), "at", ink.offsets)
    emptied = replace(first, state=pen.fresh().state)
    second, anew = (pen.hand_after(hand, "at", ink.offsets) for hand in (first, emptied))
    assert any((second.state[name] != anew.state[name]).any() for name in second.state)
    (on,) = pen.write(["at"], 1.0, 1, [first])
    assert on.offsets[0, 1] == pytest.approx(on.drawn[0, 1] + first.edge.height)
    assert first.edge.height != 0
    monkeypatch.setattr(write_ink, "hand_after", lambda hand, text, *_, **__: text)
    assert pen.hand_after(first, "it", ink.offsets) == "t it"


@pytest.mark.parametrize("text", ["", "x" * 64])
def test_a_text_that_does_not_fit_the_window_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 63 fit"):
        write(_SHIPPED, [text], bias=1.0, seed=1)


def test_a_reader_is_no_pen() -> None:
    with pytest.raises(ValueError, match="reader is of kind reader"):
        Pen(_SHIPPED.with_name("reader"))
