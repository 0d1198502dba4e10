"""Questions and what they ask for: TREC from its two files, and a stand-in that is drawn.

Shapes: N sentences, U words of the longest place there is.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lab.classify import Divided, Examples
from lab.sequences import padded_rows
from lab.source import lines_of, require_parts, required
from lab.vocabulary import Vocabulary

FILES = ("TREC.train.all", "TREC.test.all")
_AT_LEAST = 2  # times a word stands in training, to have a number of its own
_LARGEST_VOCABULARY = 10_000

Labelled = list[tuple[int, tuple[str, ...]]]


@dataclass(frozen=True)
class Sentences(Divided):
    """Sentences as `(N, U)` int64, padded with 0, and their classes; `words` numbers there are."""

    words: int
    classes: int

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"words": self.words}


def read_sentences(folder: Path | None, validation_fraction: float, places: int) -> Sentences:
    """The sentences of a folder, at most `places` words of each; drawn ones where it is None.

    What stands twice in training, or also in the test, is learned once, or not at all. Words are
    those of what is learned. Raises `ValueError` where a file is missing.
    """
    if folder is None:
        train, test = _drawn(600, 0), _drawn(150, 1)
        digest = hashlib.sha256(repr((train, test)).encode()).hexdigest()
        return _sentences("drawn sentences", digest, train, test, validation_fraction, places)
    contents = [required(folder / name).read_bytes() for name in FILES]
    train, test = (parse(content) for content in contents)
    digest = hashlib.sha256(b"".join(contents)).hexdigest()
    return _sentences("TREC", digest, train, test, validation_fraction, places)


def parse(content: bytes) -> Labelled:
    """Lines of a class and a sentence that is in words already."""
    lines = (line.split() for line in lines_of(content))
    return [(int(label), tuple(w.lower() for w in words)) for label, *words in lines]


def _sentences(
    name: str, digest: str, train: Labelled, test: Labelled, fraction: float, places: int
) -> Sentences:
    asked = {sentence for _, sentence in test}
    once = {sentence: label for label, sentence in train if sentence not in asked}
    learned = [(label, sentence) for sentence, label in once.items()]
    cut = round(len(learned) * (1 - fraction))
    require_parts(fraction, learned[:cut], learned[cut:])
    known = (sentence for _, sentence in learned[:cut])
    vocabulary = Vocabulary(known, _LARGEST_VOCABULARY, _AT_LEAST)
    first, rest, last = (
        _numbers(part, vocabulary, places) for part in (learned[:cut], learned[cut:], test)
    )
    classes = 1 + max(label for label, _ in [*learned, *test])
    return Sentences(name, digest, first, rest, last, vocabulary.size, classes)


def _numbers(labelled: Labelled, vocabulary: Vocabulary, places: int) -> Examples:
    rows = padded_rows((vocabulary.numbers(words)[:places] for _, words in labelled), places)
    return Examples(rows, torch.tensor([label for label, _ in labelled]))


def _drawn(sentences: int, seed: int) -> Labelled:
    """Sentences of 2 to 24 words, some of the sentence's class, the rest of none."""
    generator = torch.Generator().manual_seed(seed)

    def draw(below: int) -> int:
        return int(torch.randint(below, (), generator=generator))

    found: Labelled = []
    for _ in range(sentences):
        label = draw(3)
        length = 2 + draw(8) + draw(2) * draw(16)
        words: Sequence[str] = [
            f"class{label}word{draw(8)}" if draw(3) == 0 else f"word{draw(40)}"
            for _ in range(length)
        ]
        found.append((label, tuple(words)))
    return found
