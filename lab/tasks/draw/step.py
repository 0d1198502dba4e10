"""What is exported of DRAW: its decoder, one stroke a step. T steps, B rows, P pixels, Z latent."""

import torch
from torch import Tensor

from lab.experiment import Named
from lab.tasks.draw.model import Decoder, Draw
from models.generation import Port, Step, recurrent_ports


class DecoderStep(Step):
    """Noise in; out come the canvas's `picture`, probabilities of its pixels, and the `frame` of
    the grid that wrote: its centre across and down, 1 to S, and its width, in pixels.

    The canvas is a state beside those of the LSTM.
    """

    row_ports = ()

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.model = model
        real = model.background.dtype
        self.state_ports = recurrent_ports(model)
        self.step_ports = (Port("noise", real, (model.latent,)),)
        self.output_ports = (Port("picture", real, (model.pixels,)), Port("frame", real, (3,)))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        *state, noise = inputs
        after = self.model.step(noise, tuple(state))
        return *after, torch.sigmoid(self.model.logits(after)), self.model.frame(after)


def step(model: Draw) -> DecoderStep:
    """What is exported."""
    return DecoderStep(model.decoder)


def drawn(model: Draw, inputs: Named) -> Named:
    """What training's network draws with the noise, all rows together."""
    pictures, frames, state = model.draw(inputs["noise"])
    names = (f"{name}_after" for name in model.decoder.state_names)
    after = dict(zip(names, state, strict=True))
    return after | {"picture": pictures, "frame": frames}
