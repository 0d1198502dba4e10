"""What word processors type is folded to what a pen can write, accents are ink, and what cannot be
written is refused by all its names."""
# ruff: noqa: RUF001

import math
import sys
import unicodedata
from collections.abc import AsyncGenerator
from typing import Any

import numpy as np
import pytest

from contract.ink import InkManifest
from service.errors import InvalidRequest
from service.ink.letters import BAR, MARKS, apart, bases, fold, require_line, written
from service.ink.line import InkPiece
from service.ink.marks import _ABOVE, _BELOW, LineMarks, compose
from service.ink.page import Page
from tests.service.writing import InkService, online

_ACCENTED = "ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöøùúûüýÿčďěňřšťůžąćęłńśźżőűşğđāēī"
_PLAIN = "AAAAAACEEEEIIIINOOOOOOUUUUYaaaaaaceeeeiiiinoooooouuuuyycdenrstuzacelnszzousgdaei"


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("It’s “so”, ‘or’ „not“ «yes»", 'It\'s "so", \'or\' "not" "yes"'),
        ("one – two — three − four‑five…", "one - two - three - four-five..."),
        ("a\u00a0b\tc\u2009d\u3000e", "a b c d e"),
        ("so\u00adft\u200b \ufeffwidth", "soft width"),
        ("a\r\nb\u2028c", "a\nb\nc"),
        ("Straße, œuvre, Ærø, ﬁne ﬂow", "Strasse, oeuvre, AErø, fine flow"),
        ("ＡＢ！～", "AB!~"),
        ("‘’‚‛‹›ʼ′´“”„‟«»″", "'" * 9 + '"' * 7),
        ("‐‑‒–—―−", "-" * 7),
        ("a\u00ad\u200b\u200c\u200d\u2060\ufeffb", "ab"),
        ("\u2028\u2029\u0085\r\n", "\n" * 4),
        ("ﬀ ﬁ ﬂ ﬃ ﬄ ﬅ ﬆ ẞ ß Æ æ Œ œ", "ff fi fl ffi ffl st st SS ss AE ae OE oe"),
        ("‥ ĳĲ ǉǈǇ ǌǋǊ ǳǲǱ ǆǅǄ", ".. ijIJ ljLjLJ njNjNJ dzDzDZ džDžDŽ"),
        ("e\u0301 n\u0303", "é ñ"),
        ("\uff45\u0301", "é"),
        ("".join(map(chr, range(32, 127))), "".join(map(chr, range(32, 127)))),
    ],
)
def test_what_is_obvious_is_folded(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_every_space_there_is_is_folded() -> None:
    spaces = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "Zs"]
    assert fold("".join(spaces)) == " " * len(spaces)


def test_a_letter_with_marks_has_a_base_as_long_as_itself() -> None:
    assert bases(_ACCENTED) == _PLAIN
    assert all(apart(letter)[1] for letter in _ACCENTED)
    assert apart("ế") == ("e", "\u0302\u0301")
    assert [apart(letter)[0] for letter in "Țșệ"] == ["T", "s", "e"]
    assert apart("ǿ") == ("o", "\u0338\u0301")
    # Not a letter, a mark nobody draws here, another alphabet.
    for letter in ("≠", "ơ", "й", "€", "a"):
        assert apart(letter) == (letter, "")


def test_a_line_may_be_as_long_as_a_text_of_one_line_once_it_is_folded() -> None:
    require_line(fold("…" * 20))
    with pytest.raises(InvalidRequest, match="text has 61 characters, ellipses and the like"):
        require_line(fold("…" * 20 + "a"))


def test_every_mark_can_be_drawn() -> None:
    assert {*_ABOVE, *_BELOW, BAR} == MARKS


def test_all_that_cannot_be_written_is_named_at_once() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        written("5 € für λ\x07, λ und “so” ¿no?", InkManifest.model_construct())
    assert refusal.value.message == (
        "text has '€', 'λ', '\\x07', '¿'; this model writes printable ASCII and Latin letters "
        "with accents"
    )


def _line(
    text: str, height: float = 10.0, ahead: int = 3, climb: float = 0.0
) -> tuple[LineMarks, np.ndarray]:
    """A line of upright letters, a stroke of eight points each, the foot at y = 100, or by `climb`
    higher from letter to letter; the window so many points ahead, until it waits at a space."""
    marks, points, pen_at = LineMarks(text, 4.0), [], []
    for place, letter in enumerate(text):
        if letter == " ":
            continue
        x = 20.0 * place + np.array([0, 0, 0, 5, 10, 10, 10, 10])
        y = 100 - climb * place - height * np.array([1, 0.5, 0, 0, 0, 0.3, 0.6, 1])
        points.append(np.column_stack([x, y, np.arange(8) == 7]))
        pen_at.append(np.full(8, place))
    placed, here = np.concatenate(points), np.concatenate(pen_at)
    window = np.concatenate([here[ahead:], here[-1:].repeat(ahead)])
    for i, (pen, seen) in enumerate(zip(here, window, strict=True)):
        if " " in text[pen:seen]:
            window[i] = text.index(" ", pen)
    offsets = np.diff(placed, axis=0, prepend=0) * (1, -1, 0) + placed * (0, 0, 1)
    marks.follow(offsets.astype(np.float32), placed, window)
    return marks, placed


@pytest.mark.parametrize("ahead", [2, 3, 4, 5])
def test_a_mark_at_the_edge_of_a_word_stands_at_its_letter(ahead: int) -> None:
    drawn = _line("no né énu", ahead=ahead)[0].drawn()
    ends, begins = np.split(drawn[:, 0], 2)
    assert (ends.mean(), begins.mean()) == pytest.approx((85, 125), abs=3)


@pytest.mark.parametrize("ahead", [2, 3, 4])
def test_a_word_of_one_letter_has_its_mark(ahead: int) -> None:
    drawn = _line("nu à un ø nu", ahead=ahead)[0].drawn()
    accent, bar = drawn[:3, 0], drawn[3:, 0]
    assert (accent.mean(), bar.mean()) == pytest.approx((65, 165), abs=3)
    assert np.ptp(bar) < 25


def test_a_mark_is_over_its_letter_on_a_line_that_climbs() -> None:
    drawn = _line("nununununé", climb=2.0)[0].drawn()
    assert drawn[:, 1].max() < 100 - 2.0 * 9 - 10


def test_strokes_that_join_a_letter_to_others_make_its_bar_no_longer() -> None:
    for width in (0.0, 40.0):
        marks = LineMarks("ø", 4.0)
        turn = np.linspace(0, 2 * np.pi, 10)
        x = np.concatenate([[-width], 5 * np.sin(turn), [width]])
        y = np.concatenate([[100.0], 95 - 5 * np.cos(turn), [100.0]])
        points = np.column_stack([x, y, np.arange(12) == 11])
        marks.follow(
            np.diff(points, axis=0, prepend=0).astype(np.float32), points, np.zeros(12, int)
        )
        bar = marks.drawn()[:, 0]
        assert np.abs(bar).max() < 9
        assert bar.mean() == pytest.approx(0, abs=1)


@pytest.mark.parametrize("letter", "éèêëñåçşąșạūŏżőčø")
def test_a_mark_stands_at_its_letter_and_is_as_large_as_the_writing(letter: str) -> None:
    for height in (10.0, 15.0):
        marks, _ = _line(f"nu{letter}no", height)
        drawn = marks.drawn()
        assert drawn[-1, 2] == 1
        assert 40 - height / 2 < drawn[:, 0].min() < drawn[:, 0].max() < 50 + height / 2
        assert drawn[:, 0].mean() == pytest.approx(45, abs=3)
        if letter in "çşąșạ":
            assert drawn[:, 1].min() > 100 - height / 2
            assert drawn[:, 1].max() > 100
        elif letter != "ø":
            assert drawn[:, 1].max() < 100 - height
            assert drawn[:, 1].min() > 100 - 2.5 * height


# Letters are ten px wide and high here.
@pytest.mark.parametrize(
    ("letters", "bar"),
    [
        ("đ", [(5.5, 92.5), (13, 92.5)]),
        ("Đ", [(-4.5, 92.5), (3, 92.5)]),
        ("ł", [(2, 96.5), (8, 93.5)]),
        ("Ł", [(-3, 96.5), (3, 93.5)]),
        ("øØ", [(11.5, 88.5), (-1.5, 101.5)]),
    ],
)
def test_a_bar_goes_through_its_letter_where_people_put_it(
    letters: str, bar: list[tuple[float, float]]
) -> None:
    for letter in letters:
        drawn = _line(f"nu{letter}no")[0].drawn()[:, :2] - (40, 0)
        assert drawn.ravel().tolist() == pytest.approx([n for end in bar for n in end], abs=1)


def test_of_two_marks_the_second_stands_over_the_first() -> None:
    hat, acute, both = (_line(f"nu{letter}no")[0].drawn() for letter in "êéế")
    assert both[:3].tolist() == hat.tolist()
    assert both[3:].ravel().tolist() == pytest.approx((acute - (0, 5, 0)).ravel().tolist())


@pytest.mark.parametrize("lean", [0.5, -0.5])
def test_marks_lean_and_stand_as_the_letters_do(lean: float) -> None:
    def leaning(points: np.ndarray) -> np.ndarray:
        return points + (points[:, 1:2] - 100) * (-lean, 0, 0)

    text = "nuéşno"
    _, upright = _line(text)
    degrees, characters = math.degrees(math.atan(lean)), np.repeat(np.arange(len(text)), 8)
    expected = leaning(compose(text, upright, characters, 0.0, 10.0))
    drawn = compose(text, leaning(upright), characters, degrees, 10.0)
    assert drawn.ravel().tolist() == pytest.approx(expected.ravel().tolist(), abs=1.5)


def test_marks_lean_by_35_degrees_at_most() -> None:
    text = "nuéno"
    _, points = _line(text)
    for steep, steepest in ((60.0, 35.0), (-60.0, -35.0)):
        asked = text, points, np.repeat(np.arange(len(text)), 8)
        assert compose(*asked, steep, 10.0).tolist() == compose(*asked, steepest, 10.0).tolist()


@pytest.mark.parametrize(("height", "high"), [(2.0, 2.0), (10.0, 4.0), (60.0, 8.0)])
def test_a_mark_is_half_to_twice_as_large_as_is_usual(height: float, high: float) -> None:
    drawn = _line("nuéno", height)[0].drawn()
    assert np.ptp(drawn[:, 1]) == pytest.approx(high)


def test_a_letter_that_slips_off_the_line_makes_no_mark_larger() -> None:
    text = "nunué"
    _, points = _line(text)
    asked, slipped = (np.repeat(np.arange(len(text)), 8), 0.0, 10.0), points.copy()
    slipped[:8, 1] += 30
    assert compose(text, slipped, *asked).tolist() == compose(text, points, *asked).tolist()


def test_a_bar_over_its_letter_moves_no_mark() -> None:
    """As that of a t before, which is drawn later."""
    alone, crossed = _line("nunué")[0], _line("nunué")[0]
    bar = np.array([[60.0, 70, 0], [70, 70, 0], [80, 70, 0], [90, 70, 1]])
    crossed.follow(bar.astype(np.float32) * (0, 0, 1), bar, np.full(4, 4))
    assert crossed.drawn().tolist() == alone.drawn().tolist()


def test_a_line_without_marks_has_none_and_two_have_theirs() -> None:
    assert _line("none")[0].drawn().shape == (0, 3)
    drawn = _line("été")[0].drawn()
    assert drawn[:, 2].sum() == 2
    assert np.ptp(drawn[:, 0]) > 30
    assert LineMarks("é", 4.0).drawn().shape == (0, 3)


def test_an_accent_goes_through_the_dot_of_an_i() -> None:
    marks, _ = _line("naï")
    dot = np.array([[46.0, 80.0, 1.0]])
    marks.follow(np.array([[0, 0, 1]], np.float32), dot, np.array([2]))
    (x, y, _), *_ = marks.drawn()
    assert (x - 46, y - 80) == pytest.approx((4.4, 0), abs=1.0)  # the other dot, beside it
    for letter in "ìîǰ":
        marks, _ = _line(f"na{letter}")
        marks.follow(np.array([[0, 0, 1]], np.float32), dot, np.array([2]))
        middle = marks.drawn()[:, :2]
        assert np.hypot(*(middle - dot[0, :2]).T).min() < 1.5
    marks, _ = _line("naḯ")
    marks.follow(np.array([[0, 0, 1]], np.float32), dot, np.array([2]))
    second, acute = np.split(marks.drawn(), [2])
    assert second[:, 0].min() > 46 + 3
    assert acute[:, 1].max() < 80  # over both


@pytest.mark.parametrize(
    "places", [[(6, 80)], [(46, 95)], [(30, 80), (45, 80), (60, 80)]], ids=["far", "low", "bar"]
)
def test_what_is_far_or_low_or_wide_is_no_dot_of_an_i(places: list[tuple[float, float]]) -> None:
    marks, _ = _line("naï")
    points = np.array([[*place, place == places[-1]] for place in places], float)
    marks.follow(points.astype(np.float32) * (0, 0, 1), points, np.full(len(points), 2))
    drawn = marks.drawn()
    assert drawn[:, 2].sum() == 2
    assert drawn[:, 0].min() > 40


_BODY: dict[str, Any] = {"text": "Être là\noù, ça?", "seed": 3, "bias": 2.0}


def test_marks_are_ink_like_any_other(ink: InkService) -> None:
    lines = ink.lines(**_BODY)
    plain = ink.lines(**_BODY | {"text": "Etre la\nou, ca?"})
    assert [line["text"] for line in lines] == ["Être là", "où, ça?"]
    for line, without, marks in zip(lines, plain, (2, 2), strict=True):
        assert line["strokes"][: len(without["strokes"])] == without["strokes"]
        assert len(line["strokes"]) == len(without["strokes"]) + marks
    assert ink.streamed_strokes(**_BODY) == [line["strokes"] for line in lines]
    drawing = ink.post(**_BODY).text
    assert drawing.count("<path") == sum(len(line["strokes"]) for line in lines)
    assert "Être là" in drawing


def test_the_pen_is_lifted_before_the_marks_of_a_line_that_was_cut_off(pen: InkService) -> None:
    lost = pen.token(kappa=-1000.0)
    plain, marked = (pen.lines(text=text, state=lost)[0] for text in ("ete", "été"))
    assert plain["finish_reason"] == marked["finish_reason"] == "length"
    *begun, cut, first, second = marked["strokes"]
    assert begun == plain["strokes"][:-1]
    assert cut in (plain["strokes"][-1], [*plain["strokes"][-1], plain["strokes"][-1][-1]])
    assert max(map(len, (first, second))) < 5


def test_the_ink_is_the_same_if_the_last_points_come_before_the_end(
    pen: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they do where a state is looked for after the last chunk."""
    body = {"text": "été", "state": pen.token(kappa=-1000.0), "wander": 0.1}
    expected = pen.lines(**body)
    whole = Page._pieces

    async def parted(self: Page, number: int) -> AsyncGenerator[InkPiece]:
        async for piece in whole(self, number):
            if piece.finish_reason is not None:
                yield InkPiece(offsets=piece.offsets, characters=piece.characters)
                piece.offsets, piece.characters = piece.offsets[:0], piece.characters[:0]
            yield piece

    monkeypatch.setattr(Page, "_pieces", parted)
    assert pen.lines(**body) == expected


@pytest.mark.parametrize("cut", [3, 40])
def test_the_ink_is_the_same_however_a_line_is_cut_into_pieces(
    pen: InkService, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    body = {"text": "été là", "state": pen.token(kappa=-1000.0), "wander": 0.2}
    whole = Page._pieces

    async def at_once(self: Page, number: int) -> AsyncGenerator[InkPiece]:
        parts = [piece async for piece in whole(self, number)]
        last = parts[-1]
        last.offsets = np.concatenate([part.offsets for part in parts])
        last.characters = np.concatenate([part.characters for part in parts])
        yield last

    async def parted(self: Page, number: int) -> AsyncGenerator[InkPiece]:
        async for piece in at_once(self, number):
            for at in range(cut, len(piece.offsets), cut):
                part = slice(at - cut, at)
                yield InkPiece(offsets=piece.offsets[part], characters=piece.characters[part])
            rest = (len(piece.offsets) - 1) // cut * cut
            piece.offsets, piece.characters = piece.offsets[rest:], piece.characters[rest:]
            yield piece

    monkeypatch.setattr(Page, "_pieces", at_once)
    expected = pen.lines(**body)
    monkeypatch.setattr(Page, "_pieces", parted)
    assert pen.lines(**body) == expected


def test_no_mark_is_off_the_paper_to_the_right(ink: InkService) -> None:
    body = {"text": "õõõõ õõõõ õõõõ õõõõ", "width": 160, "margin": 0, "bias": 2.0}
    pages = [ink.strokes(**body, seed=seed) for seed in range(4)]
    ends = [x for page in pages for line in page for stroke in line for x, _ in stroke]
    assert max(ends) == 160


def test_a_file_says_what_is_in_it(ink: InkService) -> None:
    body = {"text": "one\ntwo", "seed": 3, "first_line": 1}
    assert "one" not in ink.post(**body, format="inkml").text
    assert "<title>two</title>" in ink.post(**body).text


def test_a_page_with_marks_goes_on_where_it_was_cut(ink: InkService) -> None:
    whole = ink.lines(**_BODY)
    ends = [e for e in ink.events(**_BODY, resume=True) if "finish_reason" in e]
    again = ends[0]["resume"]
    assert ink.lines(**_BODY | again) == whole[1:]


def test_folded_text_is_the_plain_text(ink: InkService) -> None:
    assert ink.lines(text="It’s\u00a0a “keel”…", seed=1) == ink.lines(
        text='It\'s a "keel"...', seed=1
    )


def test_strokes_and_sessions_may_say_accents_and_fold(ink: InkService) -> None:
    own = {"strokes": [[[x, x % 7] for x in range(60)]]}
    one, other = (
        ink.client.post("/v1/styles", json=own | {"text": text}).json()["style"]
        for text in ("été’s", "ete's")
    )
    assert one == other
    with online(ink, model="scrawl", text="été’s", seed=1) as session:
        assert session.ask(write=5)["points"]


@pytest.mark.parametrize("where", ["text", "style"])
def test_a_refusal_names_the_field(ink: InkService, where: str) -> None:
    own = {"strokes": [[[x, x % 7] for x in range(60)]], "text": "日本"}
    body = {"text": "日本"} if where == "text" else {"text": "a", "style": own}
    error = ink.post(**body).json()["error"]
    assert error["param"] == where
    assert "'日', '本'" in error["message"]
