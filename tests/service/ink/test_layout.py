"""Lines stand on the page, and a text is broken into them without loss."""

from itertools import pairwise

import numpy as np
import pytest

from service.ink.layout import LONGEST_LINE, break_text
from tests.service.ink.sheets import sheet


@pytest.mark.parametrize("lines", [1, 2, 9])
def test_every_baseline_is_on_the_page(lines: int) -> None:
    layout = sheet()
    baselines = [layout.origin_px(line)[1] for line in range(lines)]
    assert np.diff(baselines) == pytest.approx(40.0)
    assert baselines[0] > 0
    assert baselines[-1] < layout.height_px(lines) - layout.margin_px


@pytest.mark.parametrize(("width_px", "characters"), [(50, 8), (400, 27), (10_000, LONGEST_LINE)])
def test_a_line_is_as_long_as_the_page_and_the_model_allow(width_px: int, characters: int) -> None:
    assert sheet(width_px).characters_per_line == characters


_TEXTS = [
    "",
    "word",
    "The quick  brown\tfox jumps   over the lazy dog.",
    "a well-known half-truth - and an em-dash—here, without spaces around",
    "Donaudampfschifffahrtsgesellschaftskapitän and his ship",
    "one\n\ntwo three\r\nfour\n   \nfive",
    " leading and trailing ",
    "\n",
]


@pytest.mark.parametrize("longest", [1, 5, 8, 60])
@pytest.mark.parametrize("text", _TEXTS)
def test_broken_text_loses_nothing_but_spaces_and_fits(text: str, longest: int) -> None:
    lines = break_text(text, longest)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(len(line) <= longest for line in lines)
    assert all(line == " ".join(line.split()) for line in lines)


def test_lines_break_at_spaces_and_where_the_writer_broke_them() -> None:
    assert break_text("well-known  words go on\n\nhere", 11) == [
        "well-known",
        "words go on",
        "",
        "here",
    ]


def test_a_line_is_filled_before_the_next_begins() -> None:
    for line, following in pairwise(break_text(_TEXTS[2], 12)):
        assert len(f"{line} {following.split()[0]}") > 12
