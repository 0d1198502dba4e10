"""Stored hands: the recurrent state of the artifact after it has read some ink of a real writer.

No point of anybody's ink is kept. Run: `python -m export styles ARTIFACT`.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, StrictInt, ValidationError
from safetensors.numpy import save_file

from contract.alphabets import END, WINDOW_SYMBOLS, encode
from contract.ending import Ending
from contract.files import from_toml, replacing, to_disk
from contract.golden import Arrays
from contract.ink import STYLES, InkManifest, StyleEntry
from contract.manifest import Name, Strict, Words
from contract.noise import InkNoise
from export.artifact import read_artifact, require_files
from export.parity.report import Served
from export.parity.served import Graph
from training.ink.corpus import PenCorpus
from training.ink.prepare import Ink
from training.machine import deferred_signals

RECIPE = Path(__file__).with_name("styles.toml")
# Shorter ink says too little of a hand, longer is forgotten again.
_LENGTH = range(24, 45)  # characters
_SMALL_LETTERS = 0.6
# How wide a hand writes is measured on the same text with so much noise, as neatly as is usual.
_MEASURED = "the quick brown fox jumps over the dog"
_TIMES, _BIAS = 8, 1.0
_MOST_STEPS = 40 * len(_MEASURED)


class StyleChoice(Strict):
    """A hand by name: whose it is, and which of the writer's fitting lines is read."""

    id: Name
    description: Words
    writer: str
    line: StrictInt = 0


class _Styles(Strict):
    style: Annotated[tuple[StyleChoice, ...], Field(min_length=1)]


def read_styles(recipe: Path) -> list[StyleChoice]:
    """The hands of a recipe file, a table `[[style]]` each. Raises `ValueError` for any other."""
    if not recipe.is_file():
        raise ValueError(f"--hands is {recipe}, which is no file")
    try:
        choices = list(_Styles(**from_toml(recipe.read_text("utf-8"))).style)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(
            f"{recipe} has no table [[style]] for each hand: {place}: {first['msg']}"
        ) from error
    except ValueError as error:
        raise ValueError(f"{recipe} is no TOML: {error}") from error
    names = [choice.id for choice in choices]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{recipe}: more than one hand is called {', '.join(sorted(twice))}")
    return choices


def require_pen(artifact: Path) -> InkManifest:
    """The manifest of a pen. Raises `ValueError` for another artifact, and for one altered."""
    manifest = read_artifact(artifact)
    if not isinstance(manifest, InkManifest):
        raise ValueError(f"{artifact} is of kind {manifest.kind}; only a pen has hands")
    # Hands that were written halfway are written anew.
    require_files(artifact, {n: digest for n, digest in manifest.files.items() if n != STYLES})
    return manifest


def add_styles(artifact: Path, corpus: PenCorpus, choices: list[StyleChoice]) -> None:
    """Write `styles.safetensors` and list its hands in the manifest.

    Raises `ValueError` for a writer who wrote no fitting line, and as `require_pen` does.
    """
    manifest = require_pen(artifact)
    graph = Served(artifact, manifest).scan
    tensors: Arrays = {}
    entries: list[StyleEntry] = []
    for choice in choices:
        lines = fitting_lines(corpus, choice.writer)
        if not 0 <= choice.line < len(lines):
            raise ValueError(
                f"{choice.writer} wrote {len(lines)} fitting lines; none is {choice.line}"
            )
        ink = lines[choice.line]
        state = read_ink(graph, ink)
        for name, value in state.items():
            tensors[f"{choice.id}.{name}"] = np.ascontiguousarray(value)
        entries.append(
            StyleEntry(
                id=choice.id,
                description=choice.description,
                context=ink.text[-1],
                height=float(ink.offsets[:, 1].sum()),
                advance=advance_of(graph, state, ink.text[-1]),
            )
        )
    # The hands, and what the manifest says of them, are both written before either takes its place,
    # and nobody who interrupts comes between the two.
    with deferred_signals(), replacing(artifact / STYLES) as file:
        save_file(tensors, file)
        file.chmod(0o644)
        to_disk(file)
        manifest.with_file(STYLES, file, styles=tuple(entries)).write(artifact)


def fitting_lines(corpus: PenCorpus, writer: str) -> list[Ink]:
    """A writer's lines that show a hand: several words, small letters mostly, in order of text.
    Raises `ValueError` if there are none."""
    lines = [
        ink
        for ink in corpus.inks
        if ink.writer == writer
        and len(ink.text) in _LENGTH
        and " " in ink.text.strip()
        and sum(c.islower() for c in ink.text) >= _SMALL_LETTERS * len(ink.text)
    ]
    if not lines:
        raise ValueError(
            f"writer {writer!r} has no line of {_LENGTH.start} to {_LENGTH.stop - 1} characters, "
            "several words and small letters for the most part"
        )
    return sorted(lines, key=lambda ink: ink.text)


def read_ink(graph: Graph, ink: Ink) -> Arrays:
    """The state of one row after the ink, its window moved back to the last character of it."""
    symbols = np.full((1, WINDOW_SYMBOLS), END, np.int64)
    text = encode(ink.text)
    symbols[0, : len(text)] = text
    row = {"text": symbols, "length": np.array([len(text)]), "bias": np.zeros(1, np.float32)}
    steps = {
        "forced": ink.offsets[:, None],
        "force": np.ones((len(ink.offsets), 1), bool),
        "uniform": np.full((len(ink.offsets), 1), 0.5, np.float32),
        "normal": np.zeros((len(ink.offsets), 1, 2), np.float32),
    }
    state, _ = graph.run(graph.initial_state(1), steps, row)
    after = {name: value[0] for name, value in state.items()}
    return after | {"kappa": after["kappa"] - np.float32(len(text) - 1)}


def advance_of(graph: Graph, state: Arrays, context: str) -> float | None:
    """How wide the model writes a character in a hand, in units: the mean of some lines. None where
    no line has any width, as of a pen that has hardly learnt."""
    text = encode(f"{context} {_MEASURED}")
    symbols = np.full((_TIMES, WINDOW_SYMBOLS), END, np.int64)
    symbols[:, : len(text)] = text
    row = {
        "text": symbols,
        "length": np.full(_TIMES, len(text)),
        "bias": np.full(_TIMES, _BIAS, np.float32),
    }
    noise = [InkNoise(0, choice).take(0, _MOST_STEPS) for choice in range(_TIMES)]
    steps = {
        "forced": np.zeros((_MOST_STEPS, _TIMES, 3), np.float32),
        "force": np.zeros((_MOST_STEPS, _TIMES), bool),
        "uniform": np.stack([uniform for uniform, _ in noise], axis=1),
        "normal": np.stack([normal for _, normal in noise], axis=1),
    }
    begin = {name: np.stack([value] * _TIMES) for name, value in state.items()}
    _, outputs = graph.run(begin, steps, row)
    widths = []
    for line in range(_TIMES):
        drawn = outputs["drawn"][:, line]
        end = Ending().first(outputs["ended"][:, line], drawn)
        # The first move is from the end of the hand's own ink to the beginning of the line.
        places = drawn[1:end, 0].cumsum(dtype=np.float64)
        if len(places) and (width := np.ptp(places)) > 0:
            widths.append(width)
    return float(np.mean(widths)) / len(_MEASURED) if widths else None
