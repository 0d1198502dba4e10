"""A served language model."""

from service.models import ServedModel
from service.state import Moment
from service.text.completion import TextEdge


class TextModel(ServedModel):
    """Nothing more than any served model, but where its texts begin."""

    def beginning(self, seed: int) -> Moment[TextEdge]:
        """Before the first byte of anything."""
        return Moment(self.artifact.initial_state(), seed, 0, 0, TextEdge())
