"""What is exported of the small convolutional network: a picture in, logits out. B rows."""

from torch import Tensor

from lab.experiment import Named
from models.convolution import ConvolutionalNetwork
from models.generation import Port, Step


class PictureStep(Step):
    """A graph without state or time."""

    state_ports = ()
    step_ports = ()

    def __init__(self, model: ConvolutionalNetwork) -> None:
        super().__init__()
        self.model = model
        config, real = model.config, model.readout.weight.dtype
        self.row_ports = (Port("picture", real, (config.side, config.side, config.colors)),)
        self.output_ports = (Port("logits", real, (config.classes,)),)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return (self.model(*inputs),)


def step(model: ConvolutionalNetwork) -> PictureStep:
    """What is exported."""
    return PictureStep(model)


def classified(model: ConvolutionalNetwork, inputs: Named) -> Named:
    """What training computes."""
    return {"logits": model(inputs["picture"])}
