"""What sentence vectors are probed with: five sets of classes and SICK's pairs, and stand-ins.

The sets are for figures alone: nothing of them is shipped or learned by an encoder.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.source import lines_of, required
from lab.tasks.thoughts.data import drawn_example
from lab.vocabulary import words_of

# Name of a set: its file, and that of its test where it has one.
CLASSED = {
    "MR": ("rt-polarity.all",),
    "CR": ("custrev.all",),
    "SUBJ": ("subj.all",),
    "MPQA": ("mpqa.all",),
    "TREC": ("TREC.train.all", "TREC.test.all"),
}
RELATED = ("SICK_train.txt", "SICK_test_annotated.txt")
_DRAWN, _DRAWN_TO_LEARN = 120, 90  # examples of a set that is drawn
Words = list[str]


@dataclass(frozen=True, slots=True)
class Classed:
    """Sentences and their classes. Those from `test` on are a published test; None: ten folds."""

    name: str
    sentences: list[Words]
    classes: list[int]
    test: int | None = None

    def sample(self, count: int) -> "Classed":
        """Some of them, at most `count` to learn from and as many to test."""
        kept = _sampled(len(self.classes), self.test, count)
        test = None if self.test is None else sum(i < self.test for i in kept)
        return Classed(self.name, [self.sentences[i] for i in kept],
                       [self.classes[i] for i in kept], test)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Related:
    """Pairs of sentences and how related people found them, 1 to 5; from `test` on, the test."""

    pairs: list[tuple[Words, Words]]
    scores: list[float]
    test: int

    def sample(self, count: int) -> "Related":
        """Some of them, at most `count` to learn from and as many to test."""
        kept = _sampled(len(self.scores), self.test, count)
        return Related([self.pairs[i] for i in kept], [self.scores[i] for i in kept],
                       sum(i < self.test for i in kept))  # fmt: skip


def _sampled(total: int, test: int | None, count: int) -> list[int]:
    chance = random.Random(0)
    cut = total if test is None else test
    parts = (range(cut), range(cut, total))
    return [i for part in parts for i in sorted(chance.sample(part, min(count, len(part))))]


@dataclass(frozen=True, slots=True)
class Probes:
    """All of them."""

    classed: list[Classed]
    related: Related

    def sample(self, count: int) -> "Probes":
        """Some of each."""
        return Probes([c.sample(count) for c in self.classed], self.related.sample(count))


def read_probes(folder: Path | None) -> Probes:
    """The sets of a folder; drawn ones where it is None. Raises `ValueError` for a missing file."""
    if folder is None:
        return Probes([_drawn_classed(name) for name in CLASSED], _drawn_related())
    classed = [_classed(name, [_lines(folder / "sentclass" / file) for file in files])
               for name, files in CLASSED.items()]  # fmt: skip
    train, test = (_pairs(_lines(folder / "sick" / file)[1:]) for file in RELATED)
    both = train + test
    return Probes(classed, Related([pair for pair, _ in both], [s for _, s in both], len(train)))


def _lines(path: Path) -> list[str]:
    return lines_of(required(path).read_bytes())


def _classed(name: str, files: Sequence[list[str]]) -> Classed:
    """Lines `CLASS SENTENCE`; what is in the test as well is not learned."""
    parts = [[_labelled(line) for line in lines] for lines in files]
    tested = {tuple(words) for part in parts[1:] for words, _ in part}
    parts[0] = [one for one in parts[0] if tuple(one[0]) not in tested]
    everything = [one for part in parts for one in part]
    test = len(parts[0]) if tested else None
    return Classed(name, [words for words, _ in everything], [c for _, c in everything], test)


def _labelled(line: str) -> tuple[Words, int]:
    label, _, sentence = line.partition(" ")
    return words_of(sentence), int(label)


def _pairs(lines: Sequence[str]) -> list[tuple[tuple[Words, Words], float]]:
    fields = (line.split("\t") for line in lines)
    return [((words_of(a), words_of(b)), float(score)) for _, a, b, score, _ in fields]


def _drawn_classed(name: str) -> Classed:
    chance = random.Random(name)
    examples = [drawn_example(chance) for _ in range(_DRAWN)]
    test = _DRAWN_TO_LEARN if len(CLASSED[name]) > 1 else None
    return Classed(name, [words for words, _ in examples], [glad for _, glad in examples], test)


def _drawn_related() -> Related:
    chance = random.Random("related")
    pairs = [(drawn_example(chance)[0], drawn_example(chance)[0]) for _ in range(_DRAWN)]
    shared = [len({*a} & {*b}) / len({*a} | {*b}) for a, b in pairs]
    return Related(pairs, [1 + 4 * share for share in shared], _DRAWN_TO_LEARN)
