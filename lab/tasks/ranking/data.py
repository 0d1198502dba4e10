"""Pictures and what is said of them: Twemoji with their CLDR names and keywords, and drawn shapes.

Shapes: N pictures, S pixels of a side.
"""

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.source import require_parts, required
from lab.vocabulary import Vocabulary, words_of
from training.files import unpacking

TABLE, PICTURES = "emoji.tsv", "emoji32_rgb.npz"
FLAGS = "Flags"
# Joiners, gender signs, hair, a direction: what makes a variant of an emoji that is there without.
_MARKS = {"200D", "FE0F", "2640", "2642", "27A1", "1F9B0", "1F9B1", "1F9B2", "1F9B3"}
_PEOPLE = {"1F468", "1F469"}  # man and woman; a person is 1F9D1
_PERSON = "1F9D1"


class Pair(NamedTuple):
    """A picture's place among the pictures, and phrases of words: its name, then its keywords."""

    picture: int
    phrases: list[list[int]]


@dataclass(frozen=True, slots=True)
class Captioned:
    """Pictures `(N, S, S, 3)` bytes, a name for each, and pairs of which no base emoji is in two
    parts; `train` has flags as well, which are judged apart."""

    name: str
    sha256: str
    pictures: Tensor
    names: list[str]
    vocabulary: int
    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]
    flags: list[Pair]

    def facts(self) -> dict[str, Any]:
        """For the results."""
        counts = {n: len(getattr(self, n)) for n in ("train", "validation", "test", "flags")}
        return {"name": self.name, "sha256": self.sha256, "words": self.vocabulary} | counts


class Entry(NamedTuple):
    """One picture before its words are numbers: its base emoji and its category."""

    base: str
    category: str
    phrases: list[list[str]]


def read_captioned(folder: Path | None, language: str, fraction: float) -> Captioned:
    """The pictures of a folder with phrases of a language; drawn ones where it is None. `fraction`
    of the bases is to validate and as much to test. Raises `ValueError` for a missing file."""
    if folder is None:
        return _divided("drawn shapes", *_drawn(), fraction)
    with required(folder / TABLE).open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    pictures = required(folder / PICTURES)
    with unpacking(pictures), pictures.open("rb") as file, np.load(file) as arrays:
        images: NDArray[np.uint8] = arrays["images"]
    return _divided(f"Twemoji, {language}", *distinct(rows, images, language), fraction)


def distinct(
    rows: Sequence[dict[str, str]], images: NDArray[np.uint8], language: str
) -> tuple[list[Entry], NDArray[np.uint8]]:
    """Each picture once, of base emoji alone: it has the phrases of all that are drawn like it."""
    found: dict[bytes, Entry] = {}
    kept = []
    for row, image in zip(rows, images, strict=True):
        if row["skin"]:
            continue
        names = [row[f"name_{language}"], *row[f"keywords_{language}"].split("|")]
        phrases = [words for words in map(words_of, names) if words]
        key = image.tobytes()
        if key in found:
            found[key].phrases.extend(phrases)
        else:
            found[key] = Entry(base_of(row), row["category"], phrases)
            kept.append(image)
    return list(found.values()), np.stack(kept)


def base_of(row: dict[str, str]) -> str:
    """The emoji of which a row is a variant: no gender, hair or direction; all families are one."""
    if row["subcategory"] == "family":
        return "family"
    points = row["unified"].split("-")
    return "-".join(_PERSON if p in _PEOPLE else p for p in points if p not in _MARKS)


def _divided(
    name: str, entries: Sequence[Entry], images: NDArray[np.uint8], fraction: float
) -> Captioned:
    bases = sorted({entry.base for entry in entries})
    order = np.random.default_rng(0).permutation(len(bases))
    count = round(len(bases) * fraction)
    require_parts(fraction, order[:count], order[2 * count :])
    part = {bases[o]: min(i // count, 2) for i, o in enumerate(order)}
    learned = [phrase for e in entries if part[e.base] == 2 for phrase in e.phrases]
    vocabulary = Vocabulary(learned, size=1 << 16, at_least=2)
    pairs = [Pair(i, [vocabulary.numbers(p) for p in e.phrases]) for i, e in enumerate(entries)]
    of = [(part[e.base], e.category == FLAGS) for e in entries]
    validation, test, flags = (
        [pair for pair, place in zip(pairs, of, strict=True) if place == wanted]
        for wanted in ((0, False), (1, False), (1, True))
    )
    train = [pair for pair, (place, _) in zip(pairs, of, strict=True) if place == 2]
    digest = hashlib.sha256(images.tobytes() + repr(entries).encode()).hexdigest()
    pictures, names = torch.from_numpy(images), [" ".join(e.phrases[0]) for e in entries]
    return Captioned(name, digest, pictures, names, vocabulary.size, train, validation, test, flags)


_COLORS = {"red": (220, 30, 30), "green": (30, 160, 40), "blue": (40, 60, 220),
           "yellow": (240, 210, 30), "purple": (130, 40, 160), "grey": (120, 120, 120)}  # fmt: skip
_SHAPES = ("square", "circle", "ring", "cross", "bar", "column")
_PLACES = {"": 0, "at the left": -5, "at the right": 5}


def _drawn() -> tuple[list[Entry], NDArray[np.uint8]]:
    """Shapes of six kinds and six colours at three places on 32 x 32 pixels; some are flags."""
    entries, images = [], []
    for shape in _SHAPES:
        for color, rgb in _COLORS.items():
            for place, move in _PLACES.items():
                image = np.full((32, 32, 3), 255, np.uint8)
                image[_inside(shape, move)] = rgb
                images.append(image)
                name = [color, shape, *place.split()]
                category = FLAGS if shape == "bar" else "Symbols"
                entries.append(
                    Entry(f"{shape}-{color}-{place}", category, [name, [shape], [color]])
                )
    return entries, np.stack(images)


def _inside(shape: str, move: int) -> NDArray[np.bool_]:
    y, x = np.mgrid[-15.5:16.5, -15.5:16.5]
    x = x - move
    far = np.hypot(x, y)
    found: dict[str, NDArray[np.bool_]] = {
        "square": np.maximum(abs(x), abs(y)) < 8,
        "circle": far < 9,
        "ring": (far < 9) & (far > 5),
        "cross": (np.minimum(abs(x), abs(y)) < 2.5) & (np.maximum(abs(x), abs(y)) < 9),
        "bar": (abs(y) < 3) & (abs(x) < 9),
        "column": (abs(x) < 3) & (abs(y) < 9),
    }
    return found[shape]
