"""Are accents read? `python -m lab accents [ARTIFACT]`: sentences of seven languages in the stored
hands, read by Tesseract in the language of each, with their accents and, the same ink, without.

Our own reader knows no accents, so nobody here but Tesseract can say.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.results import machine, write_json
from lab.glyphs.judge import read_at
from lab.legibility.reading import (
    PAGE,
    Errors,
    errors,
    figures,
    one_line,
    picture_of,
    tesseract_all,
    tesseract_version,
)
from lab.legibility.write_ink import Hand, Pen, stored_in
from lab.reading.accents_sheet import plot_accents
from lab.reading.shown import named
from service.ink.letters import apart, bases, fold
from service.ink.marks import LineMarks
from service.ink.pen import LinePen

RESULTS = Path("docs", "results", "ink-accents.json")
SHEET = Path("docs", "ink-accents.png")
BIAS, _SEED = 1.0, 20261124
# By the name that Tesseract has for a language.
SENTENCES = {
    "deu": (
        "schöne Grüße aus Köln", "die Tür öffnet früh", "zwölf Äpfel für Jürgen",
        "über den Flüssen blüht es", "Mädchen hören gern Märchen", "ein kühler Krug Öl",
    ),
    "fra": (
        "l'été à la mer, déjà passé", "où est la clé du château", "une forêt très âgée",
        "ça commence à être drôle", "le garçon a goûté le thé", "élève, répète après moi",
    ),
    "spa": (
        "mañana será otro día", "el niño bebió un café", "la canción sonó aquí",
        "España está más allá", "un pequeño jardín de árboles", "cómo lo pensó él",
    ),
    "ita": (
        "la città è più bella", "perché non può venire", "il caffè è già pronto",
        "lunedì andrò all'università", "così c'è più felicità", "la verità è questa qua",
    ),
    "por": (
        "amanhã não haverá pão", "a canção do coração", "você está no avião",
        "três irmãos e uma avó", "o açúcar é da região", "as estações do ano são boas",
    ),
    "swe": (
        "på ön växer gröna träd", "hästen går över ängen", "det är en vacker kväll",
        "Åsa köper bröd och ost", "sjön ligger så stilla", "små fåglar på höga berg",
    ),
    "dan": (
        "en rød båd på søen", "hun går på den grønne ø", "København ligger smukt",
        "den lille sø bliver blå", "ål og brød på små borde", "vi får nok gode råd",
    ),
}  # fmt: skip

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence as it was written: points `(N, 3)` on `PAGE` of its base letters, of its marks,
    and the text as the pen was asked for it."""

    text: str
    letters: Points
    marks: Points

    @property
    def all(self) -> Points:
        """What a reader of the page sees."""
        return np.concatenate([self.letters, self.marks])


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("artifact", type=Path, nargs="?", default=Path("artifacts", "handwriting"))
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results to write")
    parser.add_argument("--sheet", type=Path, default=SHEET, help="the picture to write")


def run(options: argparse.Namespace) -> int:
    """0: nothing has been promised of accents but that they are there."""
    outside = tesseract_version(SENTENCES)
    pen = Pen(options.artifact)
    hands = list(stored_in(options.artifact, pen.manifest).values())
    lines = {language: write(pen, hands, texts) for language, texts in SENTENCES.items()}
    found = {language: judge(language, some) for language, some in lines.items()}
    print_found(found)
    about = {
        "command": options.told,
        "machine": machine(),
        "tesseract": outside,
        "models": {"pen": named(options.artifact)},
        "bias": BIAS,
        "seed": _SEED,
        "hands": len(hands),
        "all": together(list(found.values())),
        "languages": found,
    }
    write_json(options.out, about)
    plot_accents({language: some[: len(hands)] for language, some in lines.items()}, options.sheet)
    print(f"written to {options.out} and {options.sheet}")
    return 0


def write(pen: Pen, hands: Sequence[Hand], texts: Sequence[str]) -> list[Line]:
    """Every text in every hand, as the service writes it."""
    folded = [fold(text) for text in texts for _ in hands]
    begin = [hand for _ in texts for hand in hands]
    lines = []
    for text, ink in zip(
        folded, pen.write(list(map(bases, folded)), BIAS, _SEED, begin), strict=True
    ):
        points, marks = LinePen(PAGE, 0).move(ink.offsets), LineMarks(text, PAGE.px_per_unit)
        marks.follow(ink.offsets, points, ink.characters[: len(points)])
        lines.append(Line(text, points, marks.drawn()))
    return lines


def judge(language: str, lines: Sequence[Line]) -> dict[str, Any]:
    """What is read of lines: errors of the text, of its base letters, and of these where no mark
    is drawn; and of the letters with marks, how many are read with theirs."""
    with_marks, without = (
        [one_line(fold(t)) for t in tesseract_all([picture_of(p) for p in points], language)]
        for points in ([line.all for line in lines], [line.letters for line in lines])
    )
    texts = [line.text for line in lines]
    plain = [bases(text) for text in texts]
    return {
        "marked": figures(list(map(errors, texts, with_marks))),
        "letters": figures(list(map(errors, plain, map(bases, with_marks)))),
        "letters_unmarked": figures(list(map(errors, plain, map(bases, without)))),
        "accents": accents(texts, with_marks),
        "accents_unmarked": accents(texts, without),
    }


def accents(texts: Sequence[str], readings: Sequence[str]) -> dict[str, int]:
    """Of the letters with marks: how many there are, of how many the base was read, and of how
    many of those the marks as well, or others."""
    count = {"letters": 0, "base_read": 0, "right": 0, "other_marks": 0}
    for text, reading in zip(texts, readings, strict=True):
        for letter, seen in zip(text, read_at(text, reading), strict=True):
            base, marks = apart(letter)
            count["letters"] += bool(marks)
            if marks and seen and apart(seen)[0] == base:
                count["base_read"] += 1
                count["right"] += apart(seen)[1] == marks
                count["other_marks"] += apart(seen)[1] not in ("", marks)
    return count


def together(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All languages as one."""
    content: dict[str, Any] = {}
    for name, one in found[0].items():
        sums = {key: sum(f[name][key] for f in found) for key in one if key != "cer"}
        if "cer" in one:
            sums["cer"] = round(Errors(sums["edits"], sums["characters"]).rate, 4)
        content[name] = sums
    return content


def print_found(found: dict[str, dict[str, Any]]) -> None:
    """A row for each language, and one for all."""
    print(f"{'':6}{'text':>8}{'letters':>9}{'unmarked':>10}{'accents':>12}{'unmarked':>12}")
    for name, row in (*found.items(), ("all", together(list(found.values())))):
        rates = (row["marked"]["cer"], row["letters"]["cer"], row["letters_unmarked"]["cer"])
        print(f"{name:6}" + "".join(f"{rate:9.3f}" for rate in rates), end="")
        for key in ("accents", "accents_unmarked"):
            a = row[key]
            print(f"  {a['right']:3} of {a['base_read']} of {a['letters']}", end="")
        print()
