"""Texts broken into lines on the site: as in the service."""

import numpy as np

from service.ink.layout import break_text
from tests.site.conftest import Ask

_CASES = 200
_PIECES = [
    "a",
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
]


def test_lines_end_where_the_services_do(ask: Ask) -> None:
    random = np.random.default_rng(4)
    cases = []
    for _ in range(_CASES):
        pieces = [_PIECES[i] for i in random.integers(0, len(_PIECES), random.integers(1, 25))]
        glue = random.choice(["", " "])
        cases.append({"text": glue.join(pieces), "longest": int(random.integers(2, 45))})
    expected = [break_text(case["text"], case["longest"]) for case in cases]
    assert sum(len(lines) > 3 for lines in expected) > _CASES / 4
    assert ask("layout", cases) == expected


def test_the_last_line_is_as_long_as_the_services(ask: Ask) -> None:
    random = np.random.default_rng(5)
    cases = []
    for _ in range(_CASES):
        lengths = random.integers(1, 10, random.integers(8, 60)).tolist()
        text = " ".join("w" * length for length in lengths)
        cases.append({"text": text, "longest": int(random.integers(12, 45))})
    assert ask("layout", cases) == [break_text(case["text"], case["longest"]) for case in cases]
