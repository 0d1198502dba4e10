"""A reader of ink: pieces of strokes in, logits of characters and a blank out, as it is written
(connectionist temporal classification, Graves et al. 2006); and its twin that reads both ways.

Shapes: T time, B batch, P numbers of a piece, V symbols. `lengths (B,)` int64.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from contract.pieces import PIECE
from contract.reader import SYMBOLS
from models.bidirectional import Bidirectional
from models.cells import CellKind, State
from models.generation import Port, Step, Tensors, recurrent_ports
from models.norms import NormKind
from models.stack import Dropout, Stack, dropout_mask, require_from, require_rates

_INPUTS = PIECE + 1
# Of onnxruntime's kernels for AVX2 a long sum is rounded worse than of training's, as measured in
# docs/LOG.md. A step adds up so many products at a time.
_LONGEST_SUM = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderConfig:
    """Hyper-parameters of a reader; `units` of each layer, or of each direction of one.

    `both_ways` is the twin, which cannot read before the end is written.
    """

    cell: CellKind = "lstm"
    norm: NormKind = "layer"
    layers: int = 2
    units: int = 256
    output_dropout: float = 0.0
    both_ways: bool = False

    def __post_init__(self) -> None:
        if self.norm == "batch":
            raise ValueError(
                "model.norm is 'batch'; a line has no batch: 'layer', 'weight', 'none'"
            )
        require_from(1, layers=self.layers, units=self.units)
        require_rates(output_dropout=self.output_dropout)


class Readout(nn.Module):
    """A linear layer whose matrix is kept in parts, so that a step is a sum of short sums."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        whole = nn.Linear(inputs, SYMBOLS)
        self.parts = nn.ParameterList(_parts(whole.weight))
        self.bias = whole.bias
        self.register_load_state_dict_pre_hook(_whole_to_parts)

    def forward(self, y: Tensor) -> Tensor:
        """`(..., inputs)` to logits `(..., V)`, by one product."""
        return F.linear(y, torch.cat(list(self.parts)).T, self.bias)

    def step(self, y: Tensor) -> Tensor:
        """`(B, inputs)` to logits `(B, V)`, by a product for each part."""
        logits: Tensor = self.bias
        for part, weight in zip(y.split(_LONGEST_SUM, dim=-1), self.parts, strict=True):
            logits = torch.addmm(logits, part, weight)
        return logits


class ReaderModel(nn.Module):
    """Pieces in, logits of what has been read by then out; every layer is seen by the read-out."""

    def __init__(self, config: ReaderConfig) -> None:
        super().__init__()
        self.config = config
        dropout = Dropout(output=config.output_dropout)
        self.stack = Stack(_INPUTS, config.units, config.layers, config.cell, config.norm, dropout)
        self.readout = Readout(config.layers * config.units)

    @property
    def state_names(self) -> tuple[str, ...]:
        """The name of every state tensor, in order."""
        return self.stack.state_names

    def initial_state(self, batch: int) -> State:
        """Zeros: a tensor per state name."""
        return self.stack.initial_state(batch)

    def forward(self, pieces: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        """All steps, as in training: `pieces (T, B, P)` to logits `(T, B, V)`, and the state after
        T. What stands past the length of a row comes last, so it changes nothing that counts."""
        y, state = self.stack(_with_constant(pieces), state)
        return self.readout(y), state

    def step(self, piece: Tensor, state: State) -> tuple[Tensor, State]:
        """One step, as in serving: `piece (B, P)` to logits `(B, V)`, and the state after."""
        y, state = self.stack.step(_with_constant(piece), state)
        return self.readout.step(y), state


class TwinModel(nn.Module):
    """The reader with layers that read both ways, which has no state to go on from."""

    def __init__(self, config: ReaderConfig) -> None:
        super().__init__()
        self.config = config
        widths = [_INPUTS] + [2 * config.units] * (config.layers - 1)
        self.layers = nn.ModuleList(
            Bidirectional(width, config.units, config.cell, config.norm) for width in widths
        )
        self.readout = nn.Linear(2 * config.layers * config.units, SYMBOLS)

    def initial_state(self, batch: int) -> State:
        """Of no tensors."""
        return ()

    def forward(self, pieces: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        """As `ReaderModel.forward`, but a step knows of those after it as well."""
        x = _with_constant(pieces)
        outputs = []
        for layer in self.layers:
            x, _ = layer(x, lengths)
            outputs.append(x)
        y = torch.cat(outputs, dim=-1)
        if self.training and self.config.output_dropout > 0:
            y = y * dropout_mask(y, self.config.output_dropout)
        return self.readout(y), state


def make_reader(config: ReaderConfig) -> ReaderModel | TwinModel:
    """What a configuration asks for."""
    return TwinModel(config) if config.both_ways else ReaderModel(config)


class ReaderStep(Step):
    """One step of a reader. What it emits is the piece it is given; where none is forced on it, a
    rest, which it reads next. Nothing is drawn, so no noise is wanted."""

    def __init__(self, model: ReaderModel) -> None:
        super().__init__()
        self.model = model
        real = model.readout.bias.dtype
        self.state_ports = (Port("piece", real, (PIECE,)), *recurrent_ports(model))
        self.step_ports = (Port("forced", real, (PIECE,)), Port("force", torch.bool))
        self.row_ports = ()
        self.output_ports = (Port("logits", real, (SYMBOLS,)),)

    def forward(self, *inputs: Tensor) -> Tensors:
        piece, *state = inputs[: len(self.state_ports)]
        forced, force = inputs[len(self.state_ports) :]
        logits, after = self.model.step(piece, tuple(state))
        # Not a constant, which would be no function of the inputs.
        following = torch.where(force.unsqueeze(-1), forced, forced * 0)
        # Cloned, because a graph may not return one tensor under two names.
        return following, *after, logits.clone()


def _parts(weight: Tensor) -> list[Tensor]:
    """A matrix `(V, inputs)` as parts of its transpose, of so many rows each or fewer."""
    return [part.clone() for part in weight.detach().T.contiguous().split(_LONGEST_SUM)]


def _whole_to_parts(readout: Readout, weights: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Weights of before the matrix was kept in parts are taken as well."""
    whole = weights.pop(f"{prefix}weight", None)
    if whole is not None:
        weights |= {f"{prefix}parts.{i}": part for i, part in enumerate(_parts(whole))}


def _with_constant(pieces: Tensor) -> Tensor:
    # Layer norm hides how long a piece is, unless a constant stands beside it. Not ones_like,
    # which a served graph would take from the shape of its input.
    return torch.cat([pieces, pieces[..., :1] * 0 + 1], dim=-1)
