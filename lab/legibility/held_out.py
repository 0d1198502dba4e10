"""The real lines that are read: 200 that no network was trained on, fixed by their hashes alone.

`lines.txt` names them without saying anything of their text or ink.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from contract.files import write_whole
from lab.legibility.reading import Errors, errors
from training.ink.corpus import PenCorpus, read_pens
from training.ink.line import Tally
from training.ink.prepare import Ink, is_own

LIST = Path(__file__).with_name("lines.txt")
COUNT = 200
VALIDATION_FRACTION = 0.04  # of the writers, as in the recipe the model was trained by
_CHARACTERS = range(12, 41)
_LEAST_WORDS = 2
# A line of which most is misread even in its writer's own hand would say nothing of the model.
MOST_ERRORS = 0.7
_IDENTITY_DIGITS = 16
_POINTS = 8  # told apart to so many: a stroke may gain or lose one
_FOLDER = "unipen_r01_v07"
RULE = (
    f"lines of validation writers, {_CHARACTERS[0]} to {_CHARACTERS[-1]} characters, "
    f"{_LEAST_WORDS} words or more, whose real ink is read with CER {MOST_ERRORS} or less: "
    f"the first {COUNT} by a hash of writer, text and ink"
)


def folder() -> Path:
    """Where people's ink lies, in `EVENKEEL_DATA`. Raises `ValueError` where that is not set."""
    if "EVENKEEL_DATA" not in os.environ:
        raise ValueError("EVENKEEL_DATA is not set; it is the folder that holds the pen data")
    return Path(os.environ["EVENKEEL_DATA"], _FOLDER)


def corpus(saved: Path | None, marks: bool = False, figures: bool = False) -> PenCorpus:
    """What people wrote of the corpus in a file, or prepared from `EVENKEEL_DATA`, with isolated
    marks, figures and letters if they are wanted; a pen's own lines are no measure of it. Raises
    `ValueError`."""
    found = read_pens(saved or folder(), Tally(), marks, figures)
    return PenCorpus(found.name, [ink for ink in found.inks if not is_own(ink)])


def corpus_if_any(saved: Path | None, marks: bool = False) -> PenCorpus | None:
    """The same; None where there is neither a file nor data. Raises `ValueError`."""
    if saved is None and "EVENKEEL_DATA" not in os.environ:
        return None
    return corpus(saved, marks)


def identity(ink: Ink) -> str:
    """What the list calls a line: by what levelling and scaling do not change."""
    strokes, points = int(ink.offsets[:, 2].sum()), len(ink.offsets) // _POINTS
    digest = hashlib.sha256(f"{ink.writer}\0{ink.text}\0{strokes}\0{points}".encode())
    return digest.hexdigest()[:_IDENTITY_DIGITS]


def candidates(inks: Sequence[Ink]) -> list[Ink]:
    """The lines that may be chosen, in the order of their identities, each once."""
    fit = (i for i in inks if len(i.text) in _CHARACTERS and len(i.text.split()) >= _LEAST_WORDS)
    named = {identity(ink): ink for ink in fit}
    return [named[name] for name in sorted(named)]


def choose(inks: Sequence[Ink], read: Callable[[Sequence[Ink]], Sequence[str]]) -> list[str]:
    """The identities the rule gives. Only real ink is looked at. Raises `ValueError`."""
    lines = candidates(inks)
    rates: list[Errors] = [errors(i.text, r) for i, r in zip(lines, read(lines), strict=True)]
    readable = [i for i, e in zip(lines, rates, strict=True) if e.rate <= MOST_ERRORS]
    if len(readable) < COUNT:
        raise ValueError(f"{len(readable)} of {len(lines)} lines are readable; it takes {COUNT}")
    return [identity(ink) for ink in readable[:COUNT]]


def write_list(names: Sequence[str], path: Path = LIST) -> None:
    """One identity per line under the rule."""
    write_whole(path, "\n".join([f"# {RULE}", *names]) + "\n")


def read_list(path: Path = LIST) -> list[str]:
    """The identities in their order."""
    return [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]


def chosen(inks: Sequence[Ink], names: Sequence[str]) -> list[Ink]:
    """The lines of these names, in order. Raises `ValueError` if one is not there."""
    named = {identity(ink): ink for ink in candidates(inks)}
    if missing := [name for name in names if name not in named]:
        raise ValueError(
            f"{len(missing)} of {len(names)} lines of {LIST.name} are not in this corpus, "
            f"{missing[0]} first: it is another one, or was prepared in another way"
        )
    return [named[name] for name in names]
