"""Which character was read at which place: a text and its reading, aligned by the fewest edits."""

import string
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import jiwer

from lab.glyphs.contexts import fold

LETTERS_LEAST, MARKS_LEAST = 0.9, 0.8  # of the samples of each letter and digit, of each mark
CLASSES = {
    "lower case": string.ascii_lowercase,
    "upper case": string.ascii_uppercase,
    "digits": string.digits,
    "marks": string.punctuation,
}
_MOST_CONFUSED = 3


@dataclass(slots=True)
class Tally:
    """What one character was read as, '' where it was missed, and how often right if characters
    that are written alike count as one."""

    read_as: Counter[str] = field(default_factory=Counter)
    folded: int = 0

    def described(self, character: str) -> dict[str, Any]:
        """As results have it: shares, of so many, and what it was misread as most."""
        count = self.read_as.total()
        wrong = Counter({c: n for c, n in self.read_as.items() if c != character})
        return {
            "right": round(self.read_as[character] / count, 4),
            "folded": round(self.folded / count, 4),
            "of": count,
            "misread": dict(wrong.most_common(_MOST_CONFUSED)),
        }


def read_at(text: str, reading: str) -> list[str]:
    """The character of the reading that stands for each one of the text, '' for none."""
    (chunks,) = jiwer.process_characters(text, reading).alignments
    found = [""] * len(text)
    for chunk in chunks:
        if chunk.type in ("equal", "substitute"):
            places = range(chunk.ref_start_idx, chunk.ref_end_idx)
            found[places.start : places.stop] = reading[chunk.hyp_start_idx : chunk.hyp_end_idx]
    return found


def tally(
    texts: Sequence[str], places: Sequence[Sequence[int]], readings: Sequence[str]
) -> dict[str, Tally]:
    """What the characters at these places of each text were read as, by character."""
    found: dict[str, Tally] = defaultdict(Tally)
    for text, judged, reading in zip(texts, places, readings, strict=True):
        strict = read_at(text, reading)
        folded = read_at(fold(text), fold(reading))
        for place in judged:
            character = text[place]
            found[character].read_as[strict[place]] += 1
            found[character].folded += folded[place] == fold(character)
    return dict(found)


def classes(shares: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The mean share of each class of characters, strict and folded, and of how many of them nine
    or eight in ten are right, folded."""
    found = {}
    for name, characters in CLASSES.items():
        some = [shares[c] for c in characters if c in shares]
        if some:
            found[name] = {
                "characters": len(some),
                "right": round(mean(s["right"] for s in some), 4),
                "folded": round(mean(s["folded"] for s in some), 4),
                "reach_0.9": sum(s["folded"] >= LETTERS_LEAST for s in some),
                "reach_0.8": sum(s["folded"] >= MARKS_LEAST for s in some),
            }
    return found


def worst(shares: dict[str, dict[str, Any]], count: int) -> list[str]:
    """The characters that are read right the least, folded."""
    return sorted(shares, key=lambda c: (shares[c]["folded"], shares[c]["right"], c))[:count]
