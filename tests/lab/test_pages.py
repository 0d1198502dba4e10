"""Pages of the laboratory: what is chained is, what is counted as a lost stroke was one, and the
decay is that of the last lines beside the first."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from export.artifact import read_artifact
from lab.__main__ import main
from lab.legibility import page_sheet, pages
from lab.legibility.page_sheet import plot_pages
from lab.legibility.reading import Errors
from lab.legibility.write_ink import Hand, Pen, Written

_STROKE = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 1]], np.float32)


class TellingPen:
    """Writes the same stroke whatever it is asked for, and keeps who asked. A hand of it is a list
    of the texts that made it what it is."""

    def __init__(self, after: Sequence[tuple[float, float, float]] = ()) -> None:
        self.asked: list[tuple[int, list[str], list[list[str]]]] = []
        self._drawn = np.concatenate([_STROKE, np.array(after, np.float32).reshape(-1, 3)])

    def write(
        self, texts: list[str], bias: float, seed: int, hands: list[list[str]], further: int = 0
    ) -> list[Written]:
        self.asked.append((seed, texts, list(hands)))
        past = np.arange(len(self._drawn)) == 2  # a point before the end by the rule
        nowhere = np.zeros(len(self._drawn), int)
        return [Written(_STROKE, True, self._drawn, past, nowhere)] * len(texts)

    def hand_after(self, hand: list[str], text: str, ink: np.ndarray) -> list[str]:
        assert np.array_equal(ink, _STROKE)  # none of what was drawn past the end
        return [*hand, text]


def _written(*, chained: bool) -> TellingPen:
    pen = TellingPen(after=[(9, 0, 0)])
    hands = cast(list[Hand], [[], []])
    found = pages.write_pages(cast(Pen, pen), hands, lines=3, chained=chained)
    assert [len(page) for page in found] == [3, 3]
    return pen


def test_a_chained_line_goes_on_from_the_one_before_and_another_from_its_hand() -> None:
    chained, anchored = _written(chained=True), _written(chained=False)
    texts = [[pages.text_of(page, line) for line in range(3)] for page in range(2)]
    assert [hands for *_, hands in chained.asked] == [
        [texts[0][:line], texts[1][:line]] for line in range(3)
    ]
    assert [hands for *_, hands in anchored.asked] == [[[], []]] * 3


def test_the_noise_of_a_line_is_its_own_and_the_same_either_way() -> None:
    chained, anchored = _written(chained=True), _written(chained=False)
    seeds = [seed for seed, *_ in chained.asked]
    assert len(set(seeds)) == 3
    assert seeds == [seed for seed, *_ in anchored.asked]


def test_every_place_of_the_pages_has_each_text_equally_often() -> None:
    for line in range(pages.LINES):
        often = Counter(pages.text_of(page, line) for page in range(pages.PAGES))
        assert set(often.values()) == {pages.PAGES // len(pages.TEXTS)}
    assert {pages.text_of(0, line) for line in range(10)} == set(pages.TEXTS)  # down a page too


@pytest.mark.parametrize(
    ("after", "left"),
    [
        ([(5, 0, 0), (1, 0, 0)], False),  # on to the next word
        ([(5, 0, 0), (-5.5, 0, 0)], True),  # and back, for a dot
        ([(-1, 1, 0)], True),
        ([(1.9, 0, 0)], True),  # still at the letter
        ([(5, 0, 0)] * 12 + [(-61, 0, 0)], False),  # beyond those that are looked at
        ([], False),
    ],
)
def test_a_stroke_is_left_where_the_pen_stays_or_comes_back(
    after: list[tuple[float, float, float]], left: bool
) -> None:
    drawn = np.concatenate([_STROKE, np.array(after, np.float32).reshape(-1, 3)])
    assert pages.strokes_left(drawn, len(_STROKE)) is left


def test_endings_are_counted_by_either_rule() -> None:
    hands = cast(list[Hand], [[]])
    found = pages.endings(cast(Pen, TellingPen(after=[(9, 0, 0)])), hands)
    # The first pen-up past the text is a point before the stroke ends.
    assert (found.cut_at_pen_up, found.cut_by_rule) == (found.lines, 0)
    assert found.unended == 0
    assert pages.endings(cast(Pen, TellingPen(after=[(1, 0, 0)])), hands).cut_by_rule == found.lines


def test_a_line_that_never_left_its_text_is_not_cut_off_at_a_pen_up() -> None:
    class EndlessPen(TellingPen):
        def write(self, *arguments: Any, **options: Any) -> list[Written]:
            lines = super().write(*arguments, **options)
            return [replace(line, ended=False, past=line.past & False) for line in lines]

    found = pages.endings(cast(Pen, EndlessPen(after=[(9, 0, 0)])), cast(list[Hand], [[]]))
    assert (found.cut_at_pen_up, found.unended) == (0, found.lines)


def test_what_a_line_leaves_is_told_from_its_right_edge_not_from_where_its_pen_rests() -> None:
    back = np.array([[1, 0, 0], [4, 0, 0], [-2, 0, 1], [1.9 + pages.PAST_INK_UNITS, 0, 0]])
    assert pages.strokes_left(back.astype(np.float32), 3) is True


def test_lines_of_a_page_are_measured_with_their_own_texts() -> None:
    ink = Written(_STROKE, True, _STROKE, _STROKE[:, 0] < 0, np.zeros(3, int))
    found = list(pages._with_texts([[ink] * 3, [ink]]))
    assert [[text for text, _ in page] for page in found] == [
        [pages.text_of(0, line) for line in range(3)], [pages.text_of(1, 0)],
    ]  # fmt: skip


def test_decay_is_the_last_quarter_over_the_first() -> None:
    edits = [1, 3, 50, 50, 50, 50, 2, 6]
    assert pages.decay([pages.Lines(Errors(n, 10), 0.0, 0.0) for n in edits]) == pytest.approx(2.0)


def test_a_page_is_drawn_beside_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    to_svg = page_sheet.to_svg
    monkeypatch.setattr(page_sheet, "to_svg", lambda *given: seen.append(given) or to_svg(*given))
    plot_pages([[_STROKE] * 2, [_STROKE]], tmp_path / "pages.png")
    ((strokes, _, lines),) = seen
    assert lines == 2  # of the longer page
    first, second, beside = [stroke.mean(0) for stroke in strokes]
    assert second[0] == first[0] < second[1] - first[1]
    np.testing.assert_allclose(beside - first, (470, 0))
    png = (tmp_path / "pages.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20]) == 2 * 470


def test_pages_of_a_pen_without_hands_are_refused(
    made_once: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    nameless = shutil.copytree(made_once("scrawl"), tmp_path / "nameless")
    read_artifact(nameless).model_copy(update={"styles": ()}).write(nameless)
    monkeypatch.setattr(pages, "tesseract_version", lambda: "none")
    assert main(["pages", "--artifact", str(nameless)]) == 1
    assert "nameless has no stored hands" in capsys.readouterr().err
