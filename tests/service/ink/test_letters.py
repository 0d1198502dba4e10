"""What word processors type is folded to what a pen can write, accents are ink, and what cannot be
written is refused by all its names."""
# ruff: noqa: RUF001

import sys
import unicodedata
from collections.abc import AsyncGenerator
from typing import Any

import numpy as np
import pytest

from contract.ink import InkManifest
from service.errors import InvalidRequest
from service.ink.letters import BAR, DEGREE, MARKS, STEM, apart, bases, fold, require_line, written
from service.ink.line import InkPiece
from service.ink.page import Page
from service.ink.shapes import ABOVE, BELOW, CROSSED, HANGING
from tests.service.writing import InkService, online

_ACCENTED = "ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöøùúûüýÿčďěňřšťůžąćęłńśźżőűşğđāēīðÐþÞ"
_PLAIN = "AAAAAACEEEEIIIINOOOOOOUUUUYaaaaaaceeeeiiiinoooooouuuuyycdenrstuzacelnszzousgdaeidDpP"


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("It’s “so”, ‘or’ „not“ «yes»", 'It\'s "so", \'or\' "not" "yes"'),
        ("one – two — three − four‑five…", "one - two - three - four-five..."),
        ("a\u00a0b\tc\u2009d\u3000e", "a b c d e"),
        ("so\u00adft\u200b \ufeffwidth", "soft width"),
        ("a\r\nb\u2028c", "a\nb\nc"),
        ("Straße, œuvre, Ærø, ﬁne ﬂow", "Strasse, oeuvre, AErø, fine flow"),
        ("ＡＢ！～ ￡￥", "AB!~ £¥"),
        ("‘’‚‛‹›ʻʼ′´“”„‟«»″", "'" * 10 + '"' * 7),
        ("‐‑‒–—―−", "-" * 7),
        ("a\u00ad\u200b\u200c\u200d\u2060\ufeffb", "ab"),
        ("\u2028\u2029\u0085\r\n\r\v\f", "\n" * 7),
        ("ﬀ ﬁ ﬂ ﬃ ﬄ ﬅ ﬆ ẞ ß Æ æ Œ œ", "ff fi fl ffi ffl st st SS ss AE ae OE oe"),
        ("‥ ĳĲ ǉǈǇ ǌǋǊ ǳǲǱ ǆǅǄ", ".. ijIJ ljLjLJ njNjNJ dzDzDZ džDžDŽ"),
        ("• eggs ‣ ⁃ ◦ ▪ milk", "- eggs - - - - milk"),
        ("½ cup, 2½ of １¼; a⅞, 3⁄4 ∕", "1/2 cup, 2 1/2 of 1 1/4; a7/8, 3/4 /"),
        ("2\u2064½ 3\u00ad\u200b¼", "2 1/2 3 1/4"),  # of which the first is an invisible plus
        ("2½½ ¼\u200b¾ ½2 ⅔\u2064３", "2 1/2 1/2 1/4 3/4 1/2 2 2/3 3"),
        (
            "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞",
            "1/4 1/2 3/4 1/7 1/9 1/10 1/3 2/3 1/5 2/5 3/5 4/5 1/6 5/6 1/8 3/8 5/8 7/8",
        ),
        ("20 ℃, 68℉, 1º ˚ 2ª № 3", "20 °C, 68°F, 1° ° 2a No 3"),
        ("© ® ™, a→b ← c ⇒ 2×3", "(c) (r) (tm), a->b <- c => 2x3"),
        ("e\u0301 n\u0303", "é ñ"),
        ("\uff45\u0301", "é"),
        ("Æ\u0301 Ǽ", "Ǽ Ǽ"),  # of one letter in two forms
        ("".join(map(chr, range(32, 127))), "".join(map(chr, range(32, 127)))),
    ],
)
def test_what_is_obvious_is_folded(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_what_cannot_be_seen_is_left_out() -> None:
    # Which way a text runs, how a formula is meant, how an emoji looks; what follows is deprecated.
    unseen = [c for c in map(chr, range(0x2000, 0x206A)) if unicodedata.category(c) == "Cf"]
    assert len(unseen) > 15
    assert fold(f"a{''.join(unseen)}\ufe0e\ufe0fb") == "ab"


def test_every_space_there_is_is_folded() -> None:
    spaces = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "Zs"]
    assert fold("".join(spaces)) == " " * len(spaces)


def test_a_letter_with_marks_has_a_base_as_long_as_itself() -> None:
    assert bases(_ACCENTED) == _PLAIN
    assert all(apart(letter)[1] for letter in _ACCENTED)
    assert apart("ế") == ("e", "\u0302\u0301")
    assert [apart(letter)[0] for letter in "Țșệ"] == ["T", "s", "e"]
    assert apart("ǿ") == ("o", "\u0338\u0301")
    assert [apart(other) for other in "¿¡°"] == [("'", "¿"), ("'", "¡"), ("'", "°")]
    assert [apart(money) for money in "€£¥"] == [("C", "€"), ("L", "£"), ("Y", "¥")]
    # Not a letter, a mark nobody draws here, another alphabet.
    for letter in ("≠", "ơ", "й", "₹", "a", "¿\u0301", "'"):
        assert apart(letter) == (letter, "")


def test_a_line_may_be_as_long_as_a_text_of_one_line_once_it_is_folded() -> None:
    require_line(fold("…" * 20))
    with pytest.raises(InvalidRequest, match="text has 61 characters, ellipses and the like"):
        require_line(fold("…" * 20 + "a"))


def test_a_text_may_be_as_long_as_one_that_is_not_folded(ink: InkService) -> None:
    """It is refused for what is wrong with it besides."""
    body = {"text": "…" * 666 + "ab", "first_line": 10**6}
    assert ink.post(**body).json()["error"]["param"] == "first_line"


def test_of_all_letters_there_are_the_last_thousand_are_kept() -> None:
    for code in range(0x4E00, 0x4E00 + 3000):
        apart(chr(code))
    assert apart.cache_info().currsize < 3000


def test_every_mark_can_be_drawn() -> None:
    assert {*ABOVE, *BELOW, *HANGING, *CROSSED, BAR, DEGREE, STEM} == MARKS


def test_all_that_cannot_be_written_is_named_at_once() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        written("5 ₹ für λ\x07, λ und “so” ¶no?", InkManifest.model_construct())
    assert refusal.value.message == (
        "text has '₹', 'λ', '\\x07', '¶'; this model writes printable ASCII, Latin letters "
        "with accents, ¿ ¡ ° and € £ ¥"
    )


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
    *begun, cut, mark = marked["strokes"]  # of the second é it never came to
    assert begun == plain["strokes"][:-1]
    assert cut in (plain["strokes"][-1], [*plain["strokes"][-1], plain["strokes"][-1][-1]])
    assert len(mark) < 5


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


def test_a_model_says_what_its_pen_writes(ink: InkService) -> None:
    writes = ink.client.get("/v1/models/scrawl").json()["writes"]
    assert {chr(code) for code in range(32, 127)} <= {*writes["characters"]}
    assert writes["marks"] == sorted(MARKS)
