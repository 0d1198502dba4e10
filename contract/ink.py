"""What the manifest of a handwriting model says beyond any other, and its stored hands."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from contract.alphabets import ALPHABET, END, WINDOW_SYMBOLS
from contract.manifest import Manifest, Name, Positive, Strict, Words
from contract.strokes import (
    POINTS_PER_CHARACTER,
    UNITS_OF_SIZE,
    UNITS_PER_CHARACTER,
    UNITS_PER_LINE,
)

STYLES = "styles.safetensors"
_FARTHEST_UNITS = 1e6


class CharacterAlphabet(Strict):
    """The characters a handwriting model can write, numbered from 1; `end` stands after a text,
    which has `longest_text` characters at most, what stays in sight before it included."""

    kind: Literal["characters"] = "characters"
    characters: str = ALPHABET
    end: int = END
    longest_text: int = WINDOW_SYMBOLS - 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        # Whatever else a graph looks up has no place in its tables.
        if (self.characters, self.end, self.longest_text) != (ALPHABET, END, WINDOW_SYMBOLS - 1):
            raise ValueError("these are not the symbols of a pen")
        return self


class InkUnits(Strict):
    """How large handwriting is in the units of the model, on average."""

    points_per_character: float = POINTS_PER_CHARACTER
    units_per_character: Positive = UNITS_PER_CHARACTER
    units_per_line: Positive = UNITS_PER_LINE
    units_of_size: float = UNITS_OF_SIZE

    @model_validator(mode="after")
    def _check(self) -> Self:
        # By which a caller's strokes are prepared, whatever is said here.
        own = POINTS_PER_CHARACTER, UNITS_OF_SIZE
        if (self.points_per_character, self.units_of_size) != own:
            raise ValueError("ink is prepared in other units for a pen")
        return self


class StyleEntry(Strict):
    """A stored hand, whose recurrent state is in `styles.safetensors`: the last character it wrote,
    how high over the baseline the pen was, and how wide a character is that the model writes in it,
    where that was measured; in units."""

    id: Name
    description: Words
    context: Annotated[str, Field(pattern=r"^[ -~]$")]
    height: Annotated[float, Field(ge=-_FARTHEST_UNITS, le=_FARTHEST_UNITS)]
    advance: Positive | None = None


class InkManifest(Manifest):
    """The manifest of a handwriting model."""

    extras: ClassVar[dict[str, str]] = {STYLES: "styles"}

    kind: Literal["handwriting"] = "handwriting"
    alphabet: CharacterAlphabet = CharacterAlphabet()
    ink: InkUnits = InkUnits()
    styles: tuple[StyleEntry, ...] = ()
