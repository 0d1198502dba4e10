"""Is generated handwriting legible to an outside reader? `python -m lab legibility`
(`make legibility`): Tesseract's character error rate on real lines, on the same texts as the model
writes them, and on the wrong texts; and whether the model ends every text without scribbling.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from contract.manifest import WEIGHTS
from export.artifact import read_artifact
from export.results import machine, write_json
from lab.legibility import held_out
from lab.legibility.goal import Goal
from lab.legibility.reading import (
    PAGE,
    Errors,
    errors,
    figures,
    interval,
    overall,
    read,
    tesseract,
    tesseract_version,
)
from lab.legibility.scribbles import Tidiness, bounds, tidiness
from lab.legibility.sentences import sentences
from lab.legibility.sheet import Shown, plot_legibility
from lab.legibility.write_ink import write
from training.ink.prepare import Ink

RESULTS = Path("docs", "results", "legibility.json")
# Not among the results: it shows lines of the data, which stay out of the repository.
SHEET = Path("runs", "legibility.png")
BIAS = 1.0
MOST_REAL = 0.45  # more, and Tesseract cannot read these hands at all
MOST_GENERATED = 1.2  # times real
LEAST_WRONG = 1.6  # times real: what is read depends on what was written
LEAST_ENDED = 0.98
_SENTENCES = 500
_SEED = 20131
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Reading:
    """The errors of every line: in real ink, generated ink, and ink that writes another line."""

    real: list[Errors]
    generated: list[Errors]
    wrong: list[Errors]

    def goals(self) -> list[Goal]:
        """The errors people make, and how those of the model and of the control compare."""
        real, generated, wrong = (overall(e).rate for e in (self.real, self.generated, self.wrong))
        return [
            Goal("CER of real ink", real, MOST_REAL),
            Goal("generated / real", generated / real, MOST_GENERATED),
            Goal("wrong text / real", wrong / real, LEAST_WRONG, at_least=True),
        ]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--artifact", type=Path, default=Path("artifacts", "handwriting"))
    parser.add_argument("--pens", type=Path, help="a corpus saved as .npz, not EVENKEEL_DATA")
    parser.add_argument("--choose", action="store_true", help="fix the real lines again, and stop")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results to write")
    parser.add_argument("--sheet", type=Path, default=SHEET, help="the picture to write")


def run(options: argparse.Namespace) -> int:
    """0 if every goal is met."""
    reader = {
        "tesseract": tesseract_version(),
        "jiwer": version("jiwer"),
        "line_height_px": PAGE.line_height_px,
        "stroke_width_px": PAGE.stroke_width_px,
        "units_per_line": PAGE.units_per_line,
    }
    training, validation = held_out.corpus(options.pens).split(held_out.VALIDATION_FRACTION)
    if options.choose:
        return _choose(validation)
    lines = held_out.chosen(validation, held_out.read_list())
    head = {"command": options.told, "machine": machine(), "reader": reader}
    return measure(options.artifact, lines, training, head, options.out, options.sheet)


def measure(
    artifact: Path, lines: Sequence[Ink], training: Sequence[Ink], head: dict[str, Any],
    out: Path, sheet: Path,
) -> int:  # fmt: skip
    """Write, read, print, save after the `head` and draw some; 0 if every goal is met."""
    texts = [ink.text for ink in lines]
    written = [w.offsets for w in write(artifact, texts, BIAS, _SEED)]
    inks = [ink.offsets for ink in lines]
    readings = read(inks, tesseract), read(written, tesseract)
    reading = judge(texts, *readings)
    invented = sentences(_SENTENCES, _SEED)
    invented_inks = write(artifact, invented, BIAS, _SEED)
    people = bounds(training)
    tidy = tidiness(invented, invented_inks, people)
    # No goal, since nobody wrote these by hand: texts that were certainly not in training.
    read_back = read([w.offsets for w in invented_inks[: len(lines)]], tesseract)
    unseen = [errors(t, r) for t, r in zip(invented, read_back, strict=False)]
    known = {ink.text for ink in training}
    in_training = sum(text in known for text in texts)
    goals = reading.goals() + tidiness_goals(tidy)
    report(reading, tidy, goals)
    print(f"{in_training} of the {len(texts)} texts were written by training writers too;", end=" ")
    print(f"{len(unseen)} of the invented ones: CER {overall(unseen).rate:.3f}")
    content = {
        **head,
        "model": _model(artifact),
        "bias": BIAS,
        "seed": _SEED,
        "rule": held_out.RULE,
        **{name: figures(getattr(reading, name)) for name in ("real", "generated", "wrong")},
        "intervals": intervals(reading),
        "texts_in_training": in_training,
        "invented": figures(unseen),
        "sentences": asdict(tidy) | {"people": asdict(people)},
        "goals": [goal.described() for goal in goals],
    }
    write_json(out, content)
    shown = [Shown(*row) for row in zip(texts, inks, written, *readings, strict=True)][:_SHOWN]
    plot_legibility(shown, sheet)
    print(f"written to {out} and {sheet}")
    return 0 if all(goal.met for goal in goals) else 1


def judge(texts: Sequence[str], real: Sequence[str], generated: Sequence[str]) -> Reading:
    """What was read in real and generated ink against its text, and generated ink against others.

    The wrong text is one of about the same length, so that length alone makes no errors.
    """
    own = [[errors(t, r) for t, r in zip(texts, rs, strict=True)] for rs in (real, generated)]
    strangers = others(texts)
    wrong = [errors(text, generated[i]) for text, i in zip(texts, strangers, strict=True)]
    return Reading(own[0], own[1], wrong)


def others(texts: Sequence[str]) -> list[int]:
    """For each text the place of another one, each once, as near to it in length as can be.

    Raises `ValueError` if so many texts are the same that there is no way.
    """
    order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
    for shift in range(1, len(texts)):
        turned = order[shift:] + order[:shift]
        if all(texts[i] != texts[j] for i, j in zip(order, turned, strict=True)):
            pairs = dict(zip(order, turned, strict=True))
            return [pairs[i] for i in range(len(texts))]
    raise ValueError("too many of the texts are the same; there is no wrong one for each")


def tidiness_goals(tidy: Tidiness) -> list[Goal]:
    """Of the invented sentences, nearly all end, and none is a scribble."""
    return [
        Goal("sentences that end by the rule", tidy.ended / tidy.lines, LEAST_ENDED, at_least=True),
        Goal("sentences that scribble off", tidy.scribbled, 0),
    ]


def intervals(reading: Reading) -> dict[str, list[float]]:
    """95% of each ratio to real when the lines are drawn again with replacement."""
    return {name: interval(getattr(reading, name), reading.real) for name in ("generated", "wrong")}


def report(reading: Reading, tidy: Tidiness, goals: Sequence[Goal]) -> None:
    """Print the figures and the goals."""
    print(f"{'ink':12}{'lines':>7}{'characters':>12}{'edits':>8}{'CER':>8}")
    for name in ("real", "generated", "wrong"):
        lines = getattr(reading, name)
        all_ = overall(lines)
        print(f"{name:12}{len(lines):7}{all_.characters:12,}{all_.edits:8,}{all_.rate:8.3f}")
    for name, (low, high) in intervals(reading).items():
        print(f"{name} / real: 95% of resampled lines between {low} and {high}")
    print(f"{tidy.lines} sentences: {tidy.ended} ended, {tidy.scribbled} scribbled off\n")
    print("\n".join(goal.line() for goal in goals))


def _choose(validation: Sequence[Ink]) -> int:
    names = held_out.choose(validation, lambda inks: read([i.offsets for i in inks], tesseract))
    held_out.write_list(names)
    print(f"{len(names)} lines by the rule: {held_out.RULE}\nwritten to {held_out.LIST}")
    return 0


def _model(artifact: Path) -> dict[str, Any]:
    """Which weights were measured."""
    manifest = read_artifact(artifact)
    provenance = manifest.provenance
    return {
        "name": manifest.name,
        "weights_sha256": manifest.files[WEIGHTS],
        "updates": provenance["updates"],
        "validation_loss": provenance["validation_loss"],
    }
