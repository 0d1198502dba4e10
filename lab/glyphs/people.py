"""The same characters as people wrote them: how much of real ink is read, a ceiling for a judge."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from lab.legibility import held_out
from training.ink.compose import GAP, TOUCHING, join
from training.ink.isolated import is_mark
from training.ink.prepare import Ink

MOST_EACH = 200  # samples of a character, about
_LONGEST = 40
_LONGEST_WORD = 6
_SEED = 20261122

Judged = tuple[Ink, list[int]]  # a line, and the places in it that are judged


def real_lines(inks: Sequence[Ink]) -> list[Judged]:
    """Lines and words by their hashes, as few as give every character so many samples, where there
    are: all of their characters."""
    named = {held_out.identity(i): i for i in inks if len(i.text) <= _LONGEST and not i.isolated}
    counts: Counter[str] = Counter()
    chosen = []
    for name in sorted(named):
        text = named[name].text
        if any(counts[character] < MOST_EACH for character in text if character != " "):
            counts.update(text)
            chosen.append((named[name], [i for i, c in enumerate(text) if c != " "]))
    return chosen


def marks_among_words(inks: Sequence[Ink]) -> list[Judged]:
    """Every isolated mark set between two words: lines have few of most, and none of some."""
    generator = np.random.default_rng(_SEED)
    words = [i for i in inks if 1 < len(i.text) <= _LONGEST_WORD and i.text.isalpha()]
    rows = []
    for mark in filter(is_mark, inks):
        left, right = (words[place] for place in generator.integers(len(words), size=2))
        touches = generator.random() < 0.5
        gap, between = (TOUCHING, "") if touches else (GAP, " ")
        row = join(left, mark, generator.uniform(*gap), between)
        place = len(row.text) - 1
        rows.append((join(row, right, generator.uniform(*gap), between), [place]))
    return rows
