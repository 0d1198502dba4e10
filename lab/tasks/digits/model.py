"""What is exported of a classifier: `models.mlp.MLP`, pixels in and logits out. B rows."""

from torch import Tensor

from lab.experiment import Named
from models.generation import Port, Step
from models.mlp import MLP


class DigitsStep(Step):
    """A graph without state or time: pixels of a row to its logits."""

    state_ports = ()
    step_ports = ()

    def __init__(self, model: MLP) -> None:
        super().__init__()
        self.model = model
        real = model.readout.weight.dtype
        self.row_ports = (Port("pixels", real, (model.config.inputs,)),)
        self.output_ports = (Port("logits", real, (model.config.classes,)),)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return (self.model(*inputs),)


def step(model: MLP) -> DigitsStep:
    """What is exported."""
    return DigitsStep(model)


def classified(model: MLP, inputs: Named) -> Named:
    """What training computes."""
    return {"logits": model(inputs["pixels"])}
