"""Accents and the like, drawn on the site at the letters of a line where the service has them."""

import numpy as np
from numpy.typing import NDArray

from contract.alphabets import ALPHABET
from service.ink.letters import BAR, MARKS, apart
from service.ink.marks import LineMarks
from service.ink.measure import measure
from tests.site.conftest import Ask

_CASES = 240
_PX_PER_UNIT = 4.0
_MARKED = [c for c in map(chr, range(0x2100)) if (p := apart(c))[1] and p[0] in ALPHABET]
_WITH = [[letter for letter in _MARKED if mark in apart(letter)[1]] for mark in sorted(MARKS)]
_PLAIN = "aceinosuxbdghjklpABCDILOPYij'-   "


def _text(random: np.random.Generator, number: int) -> str:
    letters = [*random.choice(list(_PLAIN), random.integers(0, 12))]
    marked = str(random.choice(_WITH[number % len(_WITH)]))
    letters.insert(random.integers(0, len(letters) + 1), marked)
    letters += random.choice(_MARKED, number % 3).tolist()
    if number % 4 == 0:  # letters whose dots are near each other
        letters += random.choice(list("iïíĵj"), 4).tolist()
    if number % 4 == 1:  # and apostrophes
        letters += random.choice(list("°¿¡'"), 3).tolist()
    return " ".join("".join(letters).split())


def _heights(random: np.random.Generator, base: str, count: int) -> NDArray[np.float64]:
    high = random.uniform(8, 12) * (1 if base in "aceinosuxr" else 2.2)
    up = random.uniform(-0.2, 1.1, count) * high
    return 14 + up / 4 if base == "'" and random.random() < 0.8 else up


def _line(random: np.random.Generator, text: str) -> dict[str, list[float] | list[int]]:
    """Ink as a pen might write it, not always well: strokes of any shape, dots over an i or by
    it, apostrophes high up, bars that come late, a window that runs ahead and is lost at times. It
    may be cut off."""
    points: list[tuple[float, float, float]] = []
    window: list[int] = []
    lean, climb, left = random.normal(0, 0.3), random.normal(0, 1.0), 20.0
    for place, letter in enumerate(text):
        base = apart(letter)[0]
        left += random.uniform(6, 24)
        count = int(random.integers(1, 14)) if base != " " else 0
        up = _heights(random, base, count)
        x = left + random.uniform(0, 12, count).cumsum() / 4 + lean * up
        ends = random.random(count) < 0.15
        if count:
            ends[-1] |= random.random() < 0.7
        points += zip(x, 100 - climb * place - up, ends.astype(float), strict=True)
        if base in "ij" and random.random() < 0.8:
            dot = left + random.normal(3, 8) + random.uniform(0, 1, 2)
            at = 100 - climb * place - random.uniform(12, 24) + random.uniform(0, 1, 2)
            points += zip(dot, at, [0.0, 1.0], strict=True)
        window += [place] * (len(points) - len(window))
    count = len(points) if random.random() < 0.8 else int(random.integers(1, len(points) + 1))
    ahead = int(random.integers(0, 7))
    seen = np.array([*window[ahead:], *[len(text) - 1] * ahead])[:count]
    lost = random.random(count) < 0.05
    seen[lost] = np.maximum(seen[lost] - 1, 0)
    placed = np.array(points)[:count]
    moves = np.diff(placed, axis=0, prepend=0) * (1, -1, 0) / _PX_PER_UNIT + placed * (0, 0, 1)
    offsets = moves.astype(np.float32)
    return {"offsets": offsets.tolist(), "points": placed.tolist(), "characters": seen.tolist()}


def test_marks_are_where_the_service_has_them(ask: Ask) -> None:
    random = np.random.default_rng(29)
    texts = [_text(random, number) for number in range(_CASES)]
    barred = [letter for letter in _MARKED if BAR in apart(letter)[1]]
    words = np.random.default_rng(30).choice([*"aceno", *barred], (40, 8))
    texts += ["".join(word) for word in words]
    cases = [{"text": text, **_line(random, text), "unit": _PX_PER_UNIT} for text in texts]
    drawn, untouched = set[str](), 0
    for case, ours in zip(cases, ask("marks", cases), strict=True):
        text, offsets, points, characters = (
            case[name] for name in ("text", "offsets", "points", "characters")
        )
        marks = LineMarks(text, _PX_PER_UNIT)
        marks.follow(np.array(offsets, np.float32), np.array(points), np.array(characters))
        theirs = marks.drawn()
        assert np.shape(ours) == (theirs.shape if len(theirs) else (0,)), text
        if len(theirs):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6, err_msg=text)
            drawn.update(mark for letter in text for mark in apart(letter)[1])
        untouched += not len(theirs)
    assert drawn == MARKS
    assert untouched  # lines that were cut off before their marks


def test_a_hand_leans_as_in_the_service(ask: Ask) -> None:
    random = np.random.default_rng(3)
    cases = []
    for number in range(40):
        moves = random.normal([0.3, -0.1], 0.7, (60, 2)) @ [[1, 0], [number / 30 - 0.6, 1]]
        up = (random.random((60, 1)) < 0.1).astype(float)
        cases.append(np.hstack([moves, up]).astype(np.float32).tolist())
    cases += [[], [[1, -1, 0]], [[0, 0, 0], [1, 1, 0], [2, 1, 0]]]  # without a down-stroke
    expected = [measure(np.array(c, np.float32).reshape(-1, 3), 1).slant_degrees for c in cases]
    assert len(set(expected)) > 12
    assert ask("slant", cases) == expected
