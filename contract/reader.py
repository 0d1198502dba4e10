"""What reading is: the symbols a reader tells apart, the text on its best path, and what the
manifest of such a model says beyond any other.

Shapes: T steps, V symbols.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from contract.alphabets import ALPHABET
from contract.logits import log_probabilities
from contract.manifest import Manifest, Positive, Strict
from contract.pieces import PIECE_UNITS, RESTS
from contract.strokes import UNITS_OF_SIZE, UNITS_PER_LINE

# The symbol of a step that reads nothing new; characters are numbered from 1.
BLANK = 0
SYMBOLS = len(ALPHABET) + 1

_MOST_RESTS = 256  # each is a step of every answer


class ReaderAlphabet(Strict):
    """The characters a reader knows, numbered from 1, and its blank."""

    kind: Literal["characters and blank"] = "characters and blank"
    characters: str = ALPHABET
    blank: int = BLANK

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.characters, self.blank) != (ALPHABET, BLANK):  # which `best_path` reads by
            raise ValueError("these are not the symbols of a reader")
        return self


class PieceUnits(Strict):
    """How ink is cut for a reader, in units of ink: of the size of a line, the height of a ruled
    one, and the length of a piece; how many rests it has after the ink; and whether, where all the
    ink is known, delayed strokes are `reordered`."""

    units_of_size: float = UNITS_OF_SIZE
    units_per_line: Positive = UNITS_PER_LINE
    piece_units: float = PIECE_UNITS
    rests: Annotated[int, Field(ge=0, le=_MOST_RESTS)] = RESTS
    reordered: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        # By which ink is cut, whatever is said here.
        if (self.units_of_size, self.piece_units) != (UNITS_OF_SIZE, PIECE_UNITS):
            raise ValueError("ink is cut in other units for a reader")
        return self


class ReaderManifest(Manifest):
    """The manifest of a reader."""

    kind: Literal["reader"] = "reader"
    alphabet: ReaderAlphabet = ReaderAlphabet()
    pieces: PieceUnits = PieceUnits()


@dataclass(frozen=True, slots=True)
class Read:
    """A character that was read: the step at which it first was the likeliest, and the highest
    probability it had until something else was."""

    character: str
    step: int
    confidence: float


def best_path(logits: NDArray[np.floating], before: int = BLANK) -> list[Read]:
    """The text of logits `(T, V)`: of the likeliest symbol of each step, repeats are one and blanks
    none (Graves et al. 2006). `before` is the likeliest symbol of the step before them."""
    found: list[Read] = []
    sure = np.exp(log_probabilities(logits))
    likeliest = sure.argmax(-1)
    changes = np.flatnonzero(np.diff(likeliest, prepend=before))
    for start, end in zip(changes, np.append(changes, len(likeliest))[1:], strict=True):
        symbol = int(likeliest[start])
        if symbol != BLANK:
            confidence = float(sure[start:end, symbol].max())
            found.append(Read(ALPHABET[symbol - 1], int(start), confidence))
    return found
