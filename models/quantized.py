"""A language model with 8-bit matrix products: what `convert --quantize` serves, in PyTorch.

Weights are integers per output column, inputs integers on a fixed scale: a hidden unit lies in
(-1, 1) whatever the text, so nothing depends on the data of a batch and a row keeps its bits.
Shapes: T time, B batch, N outputs, K inputs.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from models.cells import State
from models.language import LanguageModel

# Two products of an unsigned byte and such a weight fit 16 bits: CPUs without VNNI add them there.
LARGEST_WEIGHT = 64
ZERO_POINT = 128
_LARGEST_INPUT = 127


def input_scales(model: LanguageModel, *, folded: bool = False) -> dict[str, float]:
    """For each matrix that is quantised, what one unit of its integer input is worth; in a folded
    model a table stands for the first of them, and tables are exact."""
    embedded = model.embedding.weight.detach().abs().max().item()
    scales = {"readout.weight": 1.0}
    for layer in range(model.config.layers):
        if layer or not folded:
            scales[f"stack.cells.{layer}.weight_x"] = 1.0 if layer else embedded
        scales[f"stack.cells.{layer}.weight_h"] = 1.0
    return {name: largest / _LARGEST_INPUT for name, largest in scales.items()}


def integers(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix `(N, K)` as int8 `(N, K)` and the worth of a unit in each of its rows, `(N,)`."""
    scale = weight.abs().amax(1) / LARGEST_WEIGHT
    scale = torch.where(scale > 0, scale, 1.0)
    return torch.round(weight / scale.unsqueeze(1)).to(torch.int8), scale


class QuantizedLanguageModel(LanguageModel):
    """The same network with rounded matrices, and rounded inputs wherever one is multiplied.

    It is stepped, in training's batch too: no gradient passes a rounding, so it is never trained.
    """

    def __init__(self, model: LanguageModel, *, folded: bool = False) -> None:
        nn.Module.__init__(self)  # of a folded weight norm the configuration knows nothing
        self.config = model.config
        self.embedding, self.stack, self.readout = copy.deepcopy(
            (model.embedding, model.stack, model.readout)
        )
        self._scales = input_scales(model, folded=folded)
        for name in self._scales:
            weight = self.get_parameter(name)
            whole, scale = integers(weight.detach())
            weight.data = whole * scale.unsqueeze(1)

    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """All steps: `tokens (T, B)` to logits `(T, B, V)`, and the state after."""
        logits = []
        for token in tokens:
            one, state = self.step(token, state)
            logits.append(one)
        return torch.stack(logits), state

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """One step: `token (B,)` to logits `(B, V)`, and the state after."""
        with _RoundedInputs({id(self.get_parameter(n)): s for n, s in self._scales.items()}):
            return super().step(token, state)


class _RoundedInputs(TorchFunctionMode):
    """Rounds the input of `F.linear` where its weight, by identity, has a scale."""

    def __init__(self, scales: dict[int, float]) -> None:
        super().__init__()
        self._scales = scales

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is F.linear and id(args[1]) in self._scales:
            scale = self._scales[id(args[1])]
            whole = torch.round(args[0] / scale).clamp(-ZERO_POINT, ZERO_POINT - 1)
            args = (whole * scale, *args[1:])
        return func(*args, **(kwargs or {}))
