"""A served language model."""

import secrets

from contract.alphabets import VOCABULARY
from service.errors import InvalidRequest
from service.models import ServedModel
from service.state import NO_SENSE, Moment, StatePolicy
from service.text.completion import TextEdge


class TextModel(ServedModel):
    """Nothing more than any served model, but where its texts begin."""

    def beginning(self, seed: int) -> Moment[TextEdge]:
        """Before the first byte of anything."""
        return Moment(self.artifact.initial_state(), seed, 0, 0, TextEdge())


def start(
    model: TextModel, state: str | None, seed: int | None, policy: StatePolicy
) -> Moment[TextEdge]:
    """Where a request begins: at its state token's moment, or before anything. Raises what
    `StateCodec.decode` raises."""
    if state is None:
        return model.beginning(secrets.randbits(53) if seed is None else seed)
    moment: Moment[TextEdge] = model.codec.go_on(state, seed, policy)
    byte, *others = moment.state.values()  # what has yet to be read stands first
    # Under batch norm another whole number counts the steps.
    counts = [array for array in others if array.dtype.kind == "i"]
    if not (0 <= byte < VOCABULARY and all(count >= 0 for count in counts)):
        raise InvalidRequest(NO_SENSE, "state")
    return moment
