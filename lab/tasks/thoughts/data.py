"""Sentences in the order they were written: War and Peace and Shakespeare, and a stand-in."""

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.source import require_parts, required
from lab.vocabulary import Vocabulary, words_of

TEXTS = ("warandpeace/warandpeace.txt", "tinyshakespeare/input.txt")
# What Project Gutenberg puts around a text, from the table of contents to its licence.
_FIRST, _LAST = (
    re.compile(r"\n+BOOK ONE: 1805\n+CHAPTER I\n+(?=\S)"),
    "End of the Project Gutenberg",
)
_SPEAKER = re.compile(r"^[A-Z][\w' ]*:$", re.MULTILINE)
# After a mark and quotes, before a capital; a title such as Mr. ends nothing.
_END = re.compile(
    r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bDr\.)(?<!\bSt\.)(?<=[.!?”\"])\s+(?=[“\"\u2018]?[A-Z])"
)
_ENDED = re.compile(r"[.!?]+[”\"\u2019)]*$")


@dataclass(frozen=True, slots=True)
class Stories:
    """Sentences as numbers of words, in order; `train`, `validation` and `test` are the places of
    those that have both neighbours in the same part of the same text."""

    name: str
    sha256: str
    vocabulary: Vocabulary
    sentences: list[list[int]]
    train: list[int]
    validation: list[int]
    test: list[int]

    def facts(self) -> dict[str, Any]:
        """For the results."""
        counts = {n: len(getattr(self, n)) for n in ("train", "validation", "test")}
        return {"name": self.name, "sha256": self.sha256, "words": self.vocabulary.size} | counts


def read_stories(folder: Path | None, size: int, fraction: float) -> Stories:
    """The sentences of the texts of a folder, with the `size` most frequent words; drawn ones where
    it is None. Of each text the end is to test, as much before it to validate, a `fraction` each.

    Raises `ValueError` for a missing file.
    """
    if folder is None:
        return _stories("drawn stories", [drawn_story(seed) for seed in range(2)], size, fraction)
    novel, plays = (required(folder / text).read_text("utf-8") for text in TEXTS)
    begun = _FIRST.split(novel, maxsplit=1)
    if len(begun) != 2:
        raise ValueError(f"{folder / TEXTS[0]} has no first chapter")
    texts = [sentences_of(begun[1].split(_LAST)[0]), sentences_of(_SPEAKER.sub("\n", plays))]
    return _stories("War and Peace, Shakespeare", texts, size, fraction)


def sentences_of(text: str) -> list[list[str]]:
    """The sentences of a text, as words. A paragraph begins a new one; headings, which end in no
    mark, are left out."""
    found = (part for paragraph in re.split(r"\n\s*\n", text)
             for part in _END.split(" ".join(paragraph.split())))  # fmt: skip
    return [words for part in found if _ENDED.search(part) and (words := words_of(part))]


def _stories(name: str, texts: Sequence[list[list[str]]], size: int, fraction: float) -> Stories:
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    learned: list[list[str]] = []
    start = 0
    for text in texts:
        cuts = [0, *(round(len(text) * (1 - n * fraction)) for n in (2, 1)), len(text)]
        for part, first, last in zip(parts, cuts, cuts[1:], strict=False):
            part.extend(range(start + first + 1, start + last - 1))
        learned += text[: cuts[1]]
        start += len(text)
    require_parts(fraction, *parts)
    vocabulary = Vocabulary(learned, size)
    everything = [words for text in texts for words in text]
    digest = hashlib.sha256(repr(everything).encode()).hexdigest()
    sentences = [vocabulary.numbers(words) for words in everything]
    return Stories(name, digest, vocabulary, sentences, *parts)


_WHO = ("anna", "boris", "the old count", "a soldier")
_MOODS = {True: ("gladly", "with joy", "kindly"), False: ("sadly", "in anger", "with fear")}
_DOES = ("saw", "took", "sold", "lost", "found")
_WHAT = ("horse", "letter", "sword", "house", "map")
_STORY = 300  # sentences


def drawn_sentence(chance: random.Random, who: str, what: str, *, glad: bool) -> list[str]:
    """A sentence of a small grammar."""
    return [*who.split(), chance.choice(_DOES), "the", what, *chance.choice(_MOODS[glad]).split()]


def drawn_story(seed: int) -> list[list[str]]:
    """Sentences of which each is about the one or the thing of the sentence before."""
    chance = random.Random(f"story {seed}")
    who, what, glad, story = _WHO[0], _WHAT[0], True, []
    for _ in range(_STORY):
        story.append(drawn_sentence(chance, who, what, glad=glad))
        if chance.random() < 0.5:
            who, glad = chance.choice(_WHO), chance.random() < 0.5
        else:
            what = chance.choice(_WHAT)
    return story


def drawn_example(chance: random.Random) -> tuple[list[str], int]:
    """A sentence and whether it is a glad one."""
    glad = chance.random() < 0.5
    who, what = chance.choice(_WHO), chance.choice(_WHAT)
    return drawn_sentence(chance, who, what, glad=glad), int(glad)
