"""A language model followed byte by byte over `/v1/online`."""

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from contract.golden import Arrays
from contract.logits import log_probabilities
from contract.noise import UniformStream
from service.errors import InvalidRequest
from service.http.fields import WHOLE, RequestBody, Seed
from service.online import MOST_STEPS, Online
from service.state import Edge, Moment, StatePolicy
from service.text.completion import TextEdge
from service.text.model import TextModel, start
from service.text.sampling import Sampling

_Byte = Annotated[int, Field(ge=0, le=255)]


class TextOpening(RequestBody):
    """The first message to a language model."""

    model: str
    seed: Seed | None = None
    state: str | None = None
    state_policy: StatePolicy = "exact"


class TextSaid(RequestBody):
    """Any message after it: bytes, or how many steps to write."""

    bytes: (
        Annotated[list[_Byte], Field(min_length=1, max_length=MOST_STEPS, fail_fast=True)] | None
    ) = None
    write: Annotated[int, Field(ge=1, le=MOST_STEPS), WHOLE] | None = None


async def follow(model: TextModel, opening: TextOpening) -> "OnlineText":
    """Begin a session."""
    moment = start(model, opening.state, opening.seed, opening.state_policy)
    return OnlineText(model, moment)


class OnlineText(Online):
    """Bytes in, the distribution of the next byte out."""

    def __init__(self, model: TextModel, moment: Moment[TextEdge]) -> None:
        super().__init__(model, moment, Sampling().row())
        self._uniforms = UniformStream(moment.seed, moment.choice)
        if moment.edge.undecided and not moment.edge.ahead:
            # Read already, and in no text that the caller has; what is ahead is shown when written.
            self.told |= {"undecided": list(moment.edge.undecided)}

    async def answer(self, message: Any) -> dict[str, Any]:
        match TextSaid.model_validate(message):
            case TextSaid(bytes=list(given), write=None):
                return {"log_probabilities": await self.read(bytes(given)), "step": self.steps}
            case TextSaid(bytes=None, write=int(count)):
                return {"bytes": list(await self.write(count)), "step": self.steps}
        raise InvalidRequest("a message to this model has either bytes or write")

    async def read(self, sent: bytes) -> np.ndarray:
        """Natural-log probabilities `(256,)` of the bytes that may follow."""
        outputs = await self._read(np.frombuffer(sent, np.uint8).astype(np.int64))
        return log_probabilities(outputs["logits"][-1])

    async def write(self, count: int) -> bytes:
        """Bytes of the model's own."""
        drawn, _ = await self._write(count)
        return drawn.astype(np.uint8).tobytes()

    def _edge(self) -> Edge:
        if not self._ahead:
            return super()._edge()
        # A completion that goes on from here shows that byte first.
        return TextEdge(ahead=True, undecided=bytes([int(self._state[self._pending])]))

    def _noise(self, count: int) -> Arrays:
        return {"uniform": self._uniforms.take(self.steps, count)}
