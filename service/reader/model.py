"""A served reader, and what lies at the edge of its states."""

import asyncio
import math
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from contract.alphabets import encode
from contract.pieces import PIECE, cut
from contract.reader import BLANK, ReaderManifest
from service.engine.given import GivenSteps, run_steps
from service.http import record
from service.ink.best import Judge, Judgement, Strokes
from service.online import MOST_STEPS
from service.reader.likelihood import log_likelihood
from service.state import Edge, Length, Moment

# A reader is surer than it is right, as networks are (Guo et al. 2017, "On calibration"): one
# hopeless mark outweighs a line. Its logits are divided by so much where draws are compared.
_SOFTENED = 3.0

_Place = tuple[Length, Length]


class ReaderEdge(Edge):
    """The line that is read, `px_per_unit` and the left end of its baseline in px if that is known
    yet; where the pen is on it in units and what of a stroke has not been read; and the likeliest
    symbol of the last step."""

    px_per_unit: Annotated[Length, Field(ge=1e-9)] = 1.0
    origin: _Place | None = None
    at: _Place | None = None
    path: tuple[_Place, ...] = ()
    last: Annotated[int, Field(ge=0)] = BLANK


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

    async def judge(self, text: str, line: Strokes) -> Judgement:
        """See `Judge`; the line is ruled, and all the ink of its text is there."""
        cuts = self.manifest.pieces
        rests, pieces = 1 + cuts.rests, np.zeros((0, PIECE), np.float32)
        if line:
            strokes = [stroke * cuts.units_per_line for stroke in line]
            # It takes as long as a step or two, and others are being served meanwhile.
            pieces = await asyncio.to_thread(cut, strokes, reordered=cuts.reordered)
        if not 0 < len(pieces) <= MOST_STEPS:
            return Judgement(-math.inf, -math.inf)
        forced = np.concatenate([pieces, np.zeros((rests, PIECE), np.float32)])
        steps = {"forced": forced, "force": np.arange(len(forced)) < len(pieces)}
        job = GivenSteps(self.artifact.initial_state(), {}, steps)
        try:
            await run_steps(self.engine, [job], admitted=True)
        finally:
            record.current().pay(len(forced) - job.steps_wanted())
        symbols = encode(text, self.manifest.alphabet.characters)
        # The sum takes as long as some steps of a model, and others are being served meanwhile.
        logits = job.outputs["logits"]
        both = np.stack([logits, logits / _SOFTENED])
        return Judgement(*(await asyncio.to_thread(log_likelihood, both, symbols)).tolist())

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"pieces": self.manifest.pieces.model_dump()}
