"""Waves as a kind that is served: over `/v1/online` alone."""

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from contract.golden import Arrays
from service.errors import InvalidRequest
from service.kind import ServiceKind
from service.models import ServedModel
from service.online import Online
from service.state import Edge, Moment
from tests.kinds.waves.contract import noise


class WaveOpening(BaseModel):
    """The first message."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    seed: int = 0
    scale: float = 1.0


class WaveSaid(BaseModel):
    """Any message after it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    values: list[float] | None = None
    write: int | None = None


class Gaussian(BaseModel):
    """Of the next value."""

    gaussian: list[float]
    step: int


class ValuesWritten(BaseModel):
    """Values of the model's own."""

    values: list[float]
    step: int


class OnlineWave(Online):
    """Values in, the Gaussian of the next one out."""

    def __init__(self, model: ServedModel, opening: WaveOpening) -> None:
        start = Moment(model.artifact.initial_state(), opening.seed, 0, 0, Edge())
        super().__init__(model, start, {"scale": np.array(opening.scale, np.float32)})

    async def answer(self, message: Any) -> dict[str, Any]:
        match message:
            case {"values": list(values)}:
                outputs = await self._read(np.array(values, np.float32)[:, None])
                return {"gaussian": outputs["gaussian"][-1].tolist(), "step": self.steps}
            case {"write": int(count)}:
                drawn, _ = await self._write(count)
                return {"values": drawn[:, 0].tolist(), "step": self.steps}
        raise InvalidRequest("a message to this model has either values or write")

    def _noise(self, count: int) -> Arrays:
        return noise(self.seed, self.steps, count)


async def _follow(model: ServedModel, opening: WaveOpening) -> OnlineWave:
    return OnlineWave(model, opening)


WAVES = ServiceKind(
    name="waves",
    model=ServedModel,
    opening=WaveOpening,
    said=WaveSaid,
    answers=(Gaussian, ValuesWritten),
    follow=_follow,
)
