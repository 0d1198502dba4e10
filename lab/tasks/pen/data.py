"""Lines of UNIPEN as the shipped pen learns from them, and a few of the synthetic pen."""

from dataclasses import dataclass
from pathlib import Path

from training.ink.corpus import PenCorpus, read_pens
from training.ink.line import Tally
from training.ink.prepare import Ink, prepare
from training.ink.synthetic import synthetic_lines

_STAND_IN_LINES = 40


@dataclass(frozen=True, slots=True)
class Pens:
    """A corpus by writers: to train on, to validate, and to test, who decide nothing."""

    corpus: PenCorpus
    train: list[Ink]
    validation: list[Ink]
    test: list[Ink]


def read(folder: Path | None, validation_fraction: float) -> Pens:
    """The lines of a folder; some of the synthetic pen where it is None. Of those who are not in
    training, half of the lines are to validate, half to test: no writer has both."""
    if folder is None:
        inks = prepare(synthetic_lines(_STAND_IN_LINES, 0), Tally())
        corpus = PenCorpus("synthetic", inks)
        third = len(inks) // 3
        return Pens(corpus, inks[2 * third :], inks[:third], inks[third : 2 * third])
    corpus = read_pens(folder, Tally())
    train, rest = corpus.split(validation_fraction)
    validation, test = halves(rest)
    return Pens(corpus, train, validation, test)


def halves(inks: list[Ink]) -> tuple[list[Ink], list[Ink]]:
    """By writers, in order of name: those of the first half of the lines, and the others."""
    inks = sorted(inks, key=lambda ink: ink.writer)
    border = inks[len(inks) // 2].writer
    first = [ink for ink in inks if ink.writer < border]
    return first, inks[len(first) :]
