"""A handwriting model followed point by point over `/v1/online`."""

import math
import secrets
from copy import copy
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field

from contract.alphabets import LONGEST_TEXT
from contract.ending import Ending
from contract.golden import Arrays
from contract.integers import LARGEST_INPUT
from contract.mixture import LOG_SIGMA, STEEPEST_TILT
from contract.noise import InkNoise
from service.errors import InvalidRequest
from service.http.fields import FLOAT32, UNICODE, WHOLE, RequestBody, Seed
from service.ink import hands
from service.ink.letters import require_line, written
from service.ink.line import SPACE_UNITS, InkEdge, row_of
from service.ink.model import InkModel
from service.ink.schemas import LineHeight, PenPoint, Place, StrokesWithText
from service.online import MOST_STEPS, Online
from service.state import Edge, Moment, StatePolicy

_HEAVIEST = 6  # Gaussians of a mixture that are shown; the others weigh next to nothing
_PORTION = 64  # steps of its own after which it looks whether the text has ended


class InkOpening(RequestBody):
    """The first message to a handwriting model: the page and the hand."""

    model: str
    seed: Seed | None = None
    state: str | None = None
    state_policy: StatePolicy = "exact"
    text: Annotated[str, Field(max_length=LONGEST_TEXT), UNICODE] = ""
    bias: Annotated[float, Field(ge=0, le=5), FLOAT32] = 0.0
    style: str | StrokesWithText | None = None
    line_height: LineHeight = 64.0
    origin: Place | None = None


class InkSaid(RequestBody):
    """Any message after it: a pen point, or how many steps to write."""

    point: PenPoint | None = None
    write: Annotated[int, Field(ge=1, le=MOST_STEPS), WHOLE] | None = None


async def follow(model: InkModel, opening: InkOpening) -> "OnlineInk":
    """Begin a session in the hand it asks for."""
    text = written(opening.text, model.manifest).replace("\n", " ")  # of one line alone
    require_line(text)
    moment = await _start(model, opening)
    row = row_of(text, moment.edge, model.manifest, opening.bias)
    px_per_unit = opening.line_height / model.manifest.ink.units_per_line
    return OnlineInk(model, moment, row, px_per_unit, opening.origin)


async def _start(model: InkModel, opening: InkOpening) -> Moment[InkEdge]:
    if opening.state is None:
        seed = secrets.randbits(53) if opening.seed is None else opening.seed
        return await hands.hand_in(model, opening.style, seed, opening.state_policy)
    if opening.style is not None:
        raise InvalidRequest(
            "style and state are both the hand to write in; give one of them", "style"
        )
    moment: Moment[InkEdge] = model.codec.go_on(opening.state, opening.seed, opening.state_policy)
    return moment


class OnlineInk(Online):
    """Pen points on a page in, the mixture of the next point out.

    The page has y down and `px_per_unit`; `origin` is the left end of the baseline in px.
    """

    def __init__(
        self,
        model: InkModel,
        moment: Moment[InkEdge],
        row: Arrays,
        px_per_unit: float,
        origin: list[float] | None,
    ) -> None:
        super().__init__(model, moment, row)
        self._scale = np.array([px_per_unit, -px_per_unit])
        hand = moment.edge
        self._at = None if origin is None else np.array(origin, np.float64)
        if hand.place is not None:
            self._at = np.array(hand.place, np.float64)
        elif self._at is not None and hand.context:
            # The hand's pen is still at the end of what it wrote last, a space before this line.
            self._at += np.array([-SPACE_UNITS, hand.height]) * self._scale
        self._ended = hand.ended
        self._ending = Ending(hand.reach)
        self._normals = InkNoise(moment.seed, moment.choice)
        self._farthest = LARGEST_INPUT if model.manifest.precision == "int8" else math.inf

    async def answer(self, message: Any) -> dict[str, Any]:
        match InkSaid.model_validate(message):
            case InkSaid(point=list(place), write=None):
                x, y, up = place
                return await self.read((x, y, float(up > 0))) | {"step": self.steps}
            case InkSaid(point=None, write=int(count)):
                points, ended = await self.write(count)
                return {"points": points, "ended": ended, "step": self.steps}
        raise InvalidRequest("a message to this model has either point or write")

    async def read(self, point: tuple[float, float, float]) -> dict[str, Any]:
        """The mixture of the point after this one, means in px."""
        if self._ended:  # the network has gone some steps past what was shown
            raise InvalidRequest("the text has ended; open another session to go on", "point")
        x, y, up = point
        place = np.array([x, y], np.float64)
        offset = np.zeros(2) if self._at is None else (place - self._at) / self._scale
        self._at = place
        offset = np.clip(offset, -self._farthest, self._farthest)
        sent = np.array([[*offset, up]], np.float32)
        self._ending.follow(sent)
        outputs = await self._read(sent)
        shown = self._mixture(outputs["mixture"][-1].astype(np.float64))
        return shown | {"character": int(outputs["character"][-1])}

    async def write(self, count: int) -> tuple[list[list[float]], bool]:
        """Points `[x, y, up]` of the model's own up to the end of the text, and if it came."""
        if self._ended:
            raise InvalidRequest("the text has ended; open another session to go on", "write")
        portions: list[np.ndarray] = []
        while count and not self._ended:
            steps = min(count, _PORTION)
            portions.append(await self._write_on(steps, admitted=bool(portions)))
            count -= steps
        drawn = np.concatenate(portions)
        start = np.zeros(2) if self._at is None else self._at
        moves = drawn[:, :2].astype(np.float64) * self._scale
        # Each is added to the place before it, so that no message's end changes a bit.
        places = np.concatenate([start[None], moves]).cumsum(0)[1:]
        self._at = places[-1]
        points = [[round(x, 2), round(y, 2), float(u)] for (x, y), u in zip(
            places.tolist(), drawn[:, 2].tolist(), strict=True)]  # fmt: skip
        return points, self._ended

    async def _write_on(self, count: int, *, admitted: bool) -> np.ndarray:
        """The model's own next points `(n, 3)` as offsets, up to the end of the text."""
        drawn, outputs = await self._write(count, admitted=admitted)
        # A step that reads a point says if the text may have ended with it, and draws the next.
        self._ending.follow(drawn[:1])
        end = self._ending.first(outputs["ended"], outputs["drawn"])
        self._ended = end is not None
        if end is not None:
            drawn = drawn[: end + 1]
        self._ending.follow(drawn[1:])
        return drawn

    def standing(self) -> Self:
        stands = super().standing()
        stands._ending = copy(self._ending)
        return stands

    def _mixture(self, raw: np.ndarray) -> dict[str, Any]:
        """Raw outputs `(6M + 1,)` as numbers on the page (Graves 2013, eq. 18-22)."""
        assert self._at is not None
        pen_up, rest = raw[0], raw[1:].reshape(6, -1)
        weight = np.exp(rest[0] - rest[0].max())
        weight /= weight.sum()
        mean = self._at[:, None] + rest[1:3] * self._scale[:, None]
        sigma = np.exp(np.clip(rest[3:5], *LOG_SIGMA)) * np.abs(self._scale)[:, None]
        # The page's y points down, which turns the tilt round.
        rho = -np.tanh(np.clip(rest[5], -STEEPEST_TILT, STEEPEST_TILT))
        heaviest = np.argsort(-weight, kind="stable")[:_HEAVIEST]
        return {
            "pen_up": float(1 / (1 + np.exp(-pen_up))),
            "mixture": [
                {
                    "weight": float(weight[m]),
                    "mean": mean[:, m].round(2).tolist(),
                    "sigma": sigma[:, m].round(3).tolist(),
                    "rho": float(rho[m]),
                }
                for m in heaviest
            ],
        }

    def _edge(self) -> Edge:
        place = None if self._at is None else tuple(self._at.tolist())
        now = {"place": place, "reach": self._ending.reach, "ended": self._ended}
        return super()._edge().model_copy(update=now)

    def _noise(self, count: int) -> Arrays:
        uniforms, normals = self._normals.take(self.steps, count)
        return {"uniform": uniforms, "normal": normals}
