"""A language model over bytes: 256 symbols, so any UTF-8 is known and nothing is out of alphabet.

Shapes: T time, B batch, V = 256 symbols.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from contract.alphabets import VOCABULARY
from models.cells import CellKind, State
from models.norms import LONGEST_STEP, NormKind
from models.quantized import Precision, check_precision, round_matrices
from models.stack import Dropout, Stack, require_from


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageConfig:
    """Hyper-parameters of a `LanguageModel`; `units` per layer, dropout rates per path.

    Batch norm keeps statistics of its own for steps up to `longest_step`; other norms have none.
    `precision` is that of the matrices.
    """

    cell: CellKind = "lstm"
    norm: NormKind = "layer"
    layers: int = 1
    units: int = 512
    embedding: int = 64
    longest_step: int = LONGEST_STEP
    input_dropout: float = 0.0
    recurrent_dropout: float = 0.0
    output_dropout: float = 0.0
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        check_precision(self.precision, self.norm)
        require_from(1, embedding=self.embedding, longest_step=self.longest_step)


class LanguageModel(nn.Module):
    """Byte in, logits of the next byte out: embedding, recurrent stack, linear read-out."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(VOCABULARY, config.embedding)
        dropout = Dropout(config.input_dropout, config.recurrent_dropout, config.output_dropout)
        self.stack = Stack(
            config.embedding,
            config.units,
            config.layers,
            config.cell,
            config.norm,
            dropout,
            config.longest_step,
        )
        self.readout = nn.Linear(config.layers * config.units, VOCABULARY)
        if config.precision == "int8":
            round_matrices(self)

    def hidden_inputs(self) -> set[str]:
        """The names of the matrices whose inputs are hidden units, between -1 and 1."""
        layers = range(self.config.layers)
        names = {f"stack.cells.{layer}.weight_h" for layer in layers}
        names |= {f"stack.cells.{layer}.weight_x" for layer in layers[1:]}
        return names | {"readout.weight"}

    def initial_state(self, batch: int) -> State:
        """Zeros: one tensor per state name of the stack."""
        return self.stack.initial_state(batch)

    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """All steps, as in training: `tokens (T, B)` to logits `(T, B, V)`, and the state after."""
        y, state = self.stack(self.embedding(tokens), state)
        return self.readout(y), state

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """One step, as in serving: `token (B,)` to logits `(B, V)`, and the state after."""
        y, state = self.stack.step(self.embedding(token), state)
        return self.readout(y), state
