"""A served reader, and what lies at the edge of its states."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from contract.alphabets import encode
from contract.pieces import PIECE, Pieces, cut, line_of
from contract.reader import BLANK, ReaderManifest
from service.engine.jobs import GivenSteps, run_steps
from service.http import record
from service.ink.best import Judge, Strokes
from service.online import MOST_STEPS
from service.reader.likelihood import log_likelihood
from service.reader.tracer import Point
from service.state import Edge, Moment


class ReaderEdge(Edge):
    """The line that is read, `px_per_unit` and the left end of its baseline in px if that is known
    yet; where the pen is on it in units and what of a stroke has not been read; and the likeliest
    symbol of the last step."""

    px_per_unit: float = 1.0
    origin: Point | None = None
    at: Point | None = None
    path: tuple[Point, ...] = ()
    last: int = BLANK


class ServedReader(Judge):
    """A reader, which can tell how legible the ink of a pen is as well."""

    @property
    def manifest(self) -> ReaderManifest:
        """The manifest, which has more to say than that of any model."""
        assert isinstance(self.artifact.manifest, ReaderManifest)
        return self.artifact.manifest

    def on_line(self, line_height: float | None, origin: list[float] | None) -> Moment[ReaderEdge]:
        """A line of which nothing is written: a ruled one of so many px, or none that is known."""
        px_per_unit = 1.0
        if line_height is not None:
            px_per_unit = line_height / self.manifest.pieces.units_per_line
        left = None if origin is None else (origin[0], origin[1])
        edge = ReaderEdge(px_per_unit=px_per_unit, origin=left)
        return Moment(self.artifact.initial_state(), 0, 0, 0, edge)

    async def log_likelihoods(self, text: str, lines: Sequence[Strokes]) -> list[float]:
        """See `Judge`; lines are levelled and measured as those of `/v1/read` are."""
        # Cutting ink and summing over paths take a while, and others are being served meanwhile.
        cuts = await asyncio.to_thread(lambda: [_pieces(line) for line in lines])
        jobs = {i: self._reading(pieces) for i, pieces in enumerate(cuts) if pieces is not None}
        record.current().pay(sum(job.steps_wanted() for job in jobs.values()))
        if jobs:
            await run_steps(self.engine, [*jobs.values()], going_on=True)
        symbols = encode(text, self.manifest.alphabet.characters)
        scores = [-np.inf] * len(lines)
        for i, job in jobs.items():
            scores[i] = await asyncio.to_thread(log_likelihood, job.outputs["logits"], symbols)
        return scores

    def _reading(self, pieces: Pieces) -> GivenSteps:
        """A line read from its beginning to the rests after it."""
        rests = np.zeros((1 + self.manifest.pieces.rests, PIECE), np.float32)
        forced = np.concatenate([pieces, rests])
        steps = {"forced": forced, "force": np.arange(len(forced)) < len(pieces)}
        return GivenSteps(self.artifact.initial_state(), {}, steps)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"pieces": self.manifest.pieces.model_dump()}


def _pieces(line: Strokes) -> Pieces | None:
    """The pieces of a line in px; None if there is no ink in it, or far too much."""
    level = line_of([stroke * (1, -1) for stroke in line])
    pieces = None if level is None else cut(level)
    return pieces if pieces is not None and len(pieces) <= MOST_STEPS else None
