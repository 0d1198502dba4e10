"""What several tasks export: a graph of rows alone. B rows."""

from torch import Tensor, nn

from models.generation import Port, Step


class RowStep(Step):
    """A graph without state or time: one tensor of a row in, one out."""

    state_ports = ()
    step_ports = ()

    def __init__(self, model: nn.Module, put: Port, out: Port) -> None:
        super().__init__()
        self.model = model
        self.row_ports, self.output_ports = (put,), (out,)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return (self.model(*inputs),)
