"""Texts are broken into lines on the site, and those squeezed that run on, as in the service."""

import numpy as np

from contract.alphabets import ALPHABET
from service.ink.breaking import break_text, width_of
from service.ink.squeeze import Squeeze
from tests.service.ink.sheets import sheet
from tests.site.conftest import Ask

_CASES = 200
_PIECES = [
    "a",
    "Iliad WHAM",
    "to",
    "keel,",
    "even-keeled",
    "w" * 23,
    " ",
    "   ",
    "\n",
    "\r\n",
    "\n\n",
    "x" * 70,
    "-" + "y" * 60,
    "https://example.org/?a_b=c&to=d@" + "z" * 30,
]


def test_lines_end_where_the_services_do(ask: Ask) -> None:
    random = np.random.default_rng(4)
    cases = []
    for _ in range(_CASES):
        pieces = [_PIECES[i] for i in random.integers(0, len(_PIECES), random.integers(1, 25))]
        glue = random.choice(["", " "])
        cases.append({"text": glue.join(pieces), "room": int(random.integers(20, 450))})
    expected = [break_text(case["text"], case["room"]) for case in cases]
    assert sum(len(lines) > 3 for lines in expected) > _CASES / 4
    assert ask("lines", cases) == expected


def test_a_line_has_as_many_characters_as_in_the_service(ask: Ask) -> None:
    """44 that are narrow, of one word or of several."""
    texts = [count * "." for count in (43, 44, 45)]
    texts += [" ".join(["il"] * 14 + [last]) for last in ("i", "il", "ilj")]
    # And a word ends after the last of its own marks that is within them.
    texts += [f"{20 * 'i'}-{count * 'i'}-iiii" for count in (22, 23)]
    cases = [{"text": text, "room": 450} for text in texts]
    expected = [break_text(case["text"], case["room"]) for case in cases]
    assert [len(lines[0]) for lines in expected[:4]] == [43, 44, 44, 43]
    assert [len(lines[0]) for lines in expected[-2:]] == [44, 21]
    assert ask("lines", cases) == expected


def test_the_last_line_is_as_long_as_the_services(ask: Ask) -> None:
    random = np.random.default_rng(5)
    cases = []
    for _ in range(_CASES):
        lengths = random.integers(1, 10, random.integers(8, 60)).tolist()
        text = " ".join("w" * length for length in lengths)
        cases.append({"text": text, "room": int(random.integers(120, 450))})
    for _ in range(_CASES // 2):  # of words that may well be a third of a line, or hardly
        text = " ".join(["keel"] * int(random.integers(4, 40)))
        cases.append({"text": text, "room": int(random.integers(60, 450))})
    # A line more, with a short last one, would leave less room over.
    short = "I cannot get him out of the house; prithee call my master to him"
    cases.append({"text": short, "room": 140})
    expected = [break_text(case["text"], case["room"]) for case in cases]
    assert len(expected[-1]) == 5
    assert ask("lines", cases) == expected


def test_every_character_is_as_wide_as_the_services(ask: Ask) -> None:
    characters = f"{ALPHABET}\u00ea\u00f8\u0162\u00de\u20ac\u00bf"
    assert ask("widths", [characters]) == [[width_of(character) for character in characters]]


def test_a_line_is_squeezed_as_the_services(ask: Ask) -> None:
    random = np.random.default_rng(6)
    text = "A line that may RUN on"
    layout, squeezed = sheet(), 0
    cases, expected = [], []
    for _ in range(40):
        xs = layout.margin_px + random.normal(random.uniform(0.5, 4), 4, 200).cumsum()
        characters = np.sort(random.integers(0, len(text), 200))
        expected.append(Squeeze(layout, text).place(xs, characters).tolist())
        squeezed += expected[-1] != xs.tolist()
        page = {"advance": 0.9, "pxPerUnit": layout.px_per_unit, "margin": layout.margin_px}
        page |= {"width": layout.width_px, "nib": layout.stroke_width_px}
        cases.append({"layout": page, "text": text, "xs": xs.tolist()} | {
            "characters": characters.tolist()})  # fmt: skip
    assert 10 < squeezed < 40
    assert ask("squeezed", cases) == expected
