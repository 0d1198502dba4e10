"""Handwriting by a served graph, without the service: many texts, each from its own randomness.

Shapes: T steps of a chunk, B rows side by side, N points of ink, M points drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contract.alphabets import WINDOW_SYMBOLS
from contract.ending import Ending
from contract.golden import Arrays
from contract.ink import InkManifest
from export.artifact import read_artifact
from export.parity.served import ServedGraph
from service.artifact import load_artifact
from service.ink.line import InkEdge, hand_after, in_sight, on_its_line, row_of
from service.ink.model import stored_hands
from service.state import Moment

ROWS = 50  # side by side
CHUNK_STEPS = 32
# Four times the points a character takes; who is not done by then never will be.
_STEPS_PER_CHARACTER, _STEPS_BESIDES = 40, 100

Hand = Moment[InkEdge]


def stored_in(artifact: Path, manifest: InkManifest) -> dict[str, Hand]:
    """The stored hands of a pen by name. Raises `ValueError` if there are none."""
    hands = stored_hands(load_artifact(artifact), manifest)
    if not hands:
        raise ValueError(f"{artifact} has no stored hands to write in")
    return hands


@dataclass(frozen=True, slots=True)
class Written:
    """Offsets `(N, 3)` as they are shown on a line: dx, dy (up) and pen_up; `ended` by the rule,
    not cut off by the limit. `drawn (M, 3)` is what the graph drew, those beyond the end too, and
    `past (M,)` whether the window had left the text with the pen up before each, and
    `characters (M,)` the place in the text where the window was."""

    offsets: NDArray[np.float32]
    ended: bool
    drawn: NDArray[np.float32]
    past: NDArray[np.bool_]
    characters: NDArray[np.int64]


class Pen:
    """A pen of an artifact on one thread: whatever is measured with it, it is not the speed."""

    def __init__(self, artifact: Path) -> None:
        manifest = read_artifact(artifact)
        if not isinstance(manifest, InkManifest):
            raise ValueError(f"{artifact} is of kind {manifest.kind}; only a pen writes ink")
        self.manifest = manifest
        path = artifact / manifest.graphs.scan.plain
        self._graph = ServedGraph(path, manifest.ports, scan=True, threads=1)

    def fresh(self) -> Hand:
        """A hand that is made up as it writes."""
        state = {name: rows[0] for name, rows in self._graph.initial_state(1).items()}
        return Moment(state, 0, 0, 0, InkEdge())

    def write(
        self,
        texts: Sequence[str],
        bias: float,
        seed: int,
        hands: Sequence[Hand] | None = None,
        further: int = 0,
    ) -> list[Written]:
        """Each text on a line, in a hand each or in made-up ones, and at least `further` points
        after its end. The same seed, text, hand and place in `texts` give the same ink.

        Raises `ValueError` for a text the model cannot be asked for.
        """
        for text in texts:
            if not 0 < len(text) < WINDOW_SYMBOLS:
                raise ValueError(
                    f"{text!r} has {len(text)} characters; 1 to {WINDOW_SYMBOLS - 1} fit"
                )
        hands = hands or [self.fresh()] * len(texts)
        written: dict[int, Written] = {}
        # Texts of about one length together, or all of a batch would wait for its longest.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), ROWS):
            places = order[start : start + ROWS]
            noise = [np.random.default_rng([seed, place]) for place in places]
            some = [(texts[place], hands[place]) for place in places]
            rows = self._rows(some, bias, noise, further)
            written.update(zip(places, rows, strict=True))
        return [written[place] for place in range(len(texts))]

    def hand_after(self, hand: Hand, text: str, ink: NDArray[np.float32]) -> Hand:
        """The hand as it is at the end of this ink of its own `(N, 3)`."""
        steps = {
            "forced": ink[:, None],
            "force": np.ones((len(ink), 1), np.bool_),
            "uniform": np.full((len(ink), 1), 0.5, np.float32),
            "normal": np.zeros((len(ink), 1, 2), np.float32),
        }
        row = _stacked([row_of(text, hand.edge, self.manifest, bias=0.0)])
        state, _ = self._graph.run(_stacked([hand.state]), steps, row)
        after = {name: rows[0] for name, rows in state.items()}
        return hand_after(hand, in_sight(text, hand.edge), ink, after, drawn=0)

    def _rows(
        self,
        lines: Sequence[tuple[str, Hand]],
        bias: float,
        noise: Sequence[np.random.Generator],
        further: int,
    ) -> list[Written]:
        """Rows side by side, until all have ended or reached their limit."""
        row = _stacked([row_of(text, hand.edge, self.manifest, bias) for text, hand in lines])
        state = _stacked([hand.state for _, hand in lines])
        limits = [_STEPS_BESIDES + _STEPS_PER_CHARACTER * len(text) for text, _ in lines]
        rules = [Ending() for _ in lines]
        ends: list[int | None] = [None] * len(lines)
        drawn = np.zeros((0, len(lines), 3), np.float32)
        past = np.zeros((0, len(lines)), np.bool_)
        places = np.zeros((0, len(lines)), np.int64)
        while any(
            len(drawn) < (limit if end is None else min(limit, end) + further)
            for end, limit in zip(ends, limits, strict=True)
        ):
            state, outputs = self._graph.run(state, _steps(noise), row)
            for i, rule in enumerate(rules):
                if ends[i] is None:
                    found = rule.first(outputs["ended"][:, i], outputs["drawn"][:, i])
                    ends[i] = None if found is None else len(drawn) + found
                    rule.follow(outputs["drawn"][:, i])
            drawn = np.concatenate([drawn, outputs["drawn"]])
            past = np.concatenate([past, outputs["ended"]])
            places = np.concatenate([places, outputs["character"]])
        return [
            _cut(line, drawn[:, i], past[:, i], places[:, i], end, limit)
            for i, (line, end, limit) in enumerate(zip(lines, ends, limits, strict=True))
        ]


def write(artifact: Path, texts: Sequence[str], bias: float, seed: int) -> list[Written]:
    """As `Pen.write`, in made-up hands."""
    return Pen(artifact).write(texts, bias, seed)


def _stacked(rows: Sequence[Arrays]) -> Arrays:
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _steps(noise: Sequence[np.random.Generator]) -> Arrays:
    """The randomness of a chunk, nothing forced; a row's own, whoever is beside it."""
    # Odd multiples of 2**-24, as in the service: neither 0 nor 1.
    words = [g.integers(0, 2**23, CHUNK_STEPS) for g in noise]
    uniform = (np.stack(words, axis=1) * 2.0**-23 + 2.0**-24).astype(np.float32)  # (T, B)
    normal = np.stack([g.standard_normal((CHUNK_STEPS, 2), np.float32) for g in noise], axis=1)
    return {
        "uniform": uniform,
        "normal": normal,  # (T, B, 2)
        "forced": np.zeros((*uniform.shape, 3), np.float32),
        "force": np.zeros(uniform.shape, np.bool_),
    }


def _cut(
    line: tuple[str, Hand],
    drawn: NDArray[np.float32],
    past: NDArray[np.bool_],
    places: NDArray[np.int64],
    end: int | None,
    limit: int,
) -> Written:
    """What was written before the step that ended the text, `limit` steps at most.

    The point drawn at that step is where a next word would begin, no ink.
    """
    text, hand = line
    ended = end is not None and end < limit
    ink = drawn[: end if ended else limit]
    shown = on_its_line(ink, hand.edge) if len(ink) else ink
    before = len(in_sight(text, hand.edge)) - len(text)
    return Written(shown, ended, drawn, past, (places - before).clip(0, len(text) - 1))
