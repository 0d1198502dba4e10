"""Samples a model draws from itself, which golden vectors and parity reports are made of.

No corpus is needed and none is shipped. Of any kind of model: a sample goes by the ports of the
step that drew it. Shapes: T steps, B rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import parametrize

from contract.golden import Arrays
from contract.noise import LEAST_UNIFORM
from models.generation import Step

# Draws closer than this to the border between two cases are drawn again, so that a replay that
# computes the same distribution up to rounding must draw the same.
MARGIN = 1e-3
# Where every symbol is improbable, as in an untrained model, no place is clear of borders.
_MOST_REDRAWS = 1000
# Attestation allows this many times the float32 error that training itself had against float64.
BOUND_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What a model emitted `(T, B, ...)`, the noise that made it, `(T, B, ...)` by port, and the
    row inputs it was drawn with, `(B, ...)` by port."""

    symbols: Tensor
    noise: dict[str, Tensor]
    row: dict[str, Tensor]

    def of(self, rows: slice) -> "Sample":
        """Some of the rows."""
        return Sample(
            self.symbols[:, rows],
            {name: t[:, rows] for name, t in self.noise.items()},
            {name: t[rows] for name, t in self.row.items()},
        )

    def first(self, steps: int) -> "Sample":
        """The first steps of all rows."""
        return Sample(
            self.symbols[:steps], {name: t[:steps] for name, t in self.noise.items()}, self.row
        )

    def rows(self) -> Arrays:
        """The row inputs as arrays."""
        return {name: t.numpy() for name, t in self.row.items()}

    def read(self) -> Arrays:
        """Per-step inputs that make a graph read the sample: every symbol forced."""
        return self._steps(self.symbols.numpy(), forced=True)

    def drawn(self) -> Arrays:
        """Per-step inputs that make a graph draw it again."""
        return self._steps(np.zeros_like(self.symbols.numpy()), forced=False)

    def _steps(self, symbols: np.ndarray, *, forced: bool) -> Arrays:
        force = np.full(symbols.shape[:2], forced)
        noise = {name: t.numpy() for name, t in self.noise.items()}
        return {"forced": symbols, "force": force} | noise


@parametrize.cached()  # integers are made floats once, not once a step
@torch.no_grad()
def draw(
    step: Step, row: dict[str, Tensor], noise: Arrays, margin: float = 0.0, seed: int = 0
) -> Sample:
    """Let the model write: every symbol drawn by the served sampler, in PyTorch.

    `row` may hold options the step does not take. With a `margin`, uniforms within it of another
    case are replaced, by generator `seed`.
    """
    used = {p.name: torch.from_numpy(noise[p.name]).to(p.dtype) for p in step.noise_ports}
    uniforms, *others = used.values()
    row = {n: t.to(uniforms.dtype) if t.is_floating_point() else t for n, t in row.items()}
    options = [row[p.name] for p in step.row_ports]
    steps, batch = uniforms.shape[:2]
    state = step.initial_state(batch)
    unused, free = torch.zeros_like(state[0]), torch.zeros(batch, dtype=torch.bool)
    generator = torch.Generator().manual_seed(seed)
    symbols = []

    def emit(t: int, state: tuple[Tensor, ...], u: Tensor) -> tuple[Tensor, ...]:
        return tuple(step(*state, unused, free, u, *(n[t] for n in others), *options))

    for t in range(steps):
        here = partial(emit, t, state)
        if margin:
            uniforms[t] = _clear_of_borders(uniforms[t], margin, here, generator)
        state = here(uniforms[t])[: len(step.state_ports)]
        symbols.append(state[0])
    return Sample(torch.stack(symbols), used, row)


@parametrize.cached()
@torch.no_grad()
def read(step: Step, sample: Sample) -> dict[str, Tensor]:
    """The outputs `(T, B, ...)` of a step in PyTorch that reads a sample of numbers, by port."""
    real = step.noise_ports[0].dtype
    symbols = sample.symbols.to(real)
    noise = [sample.noise[p.name].to(real) for p in step.noise_ports]
    row = [t.to(real) if t.is_floating_point() else t for t in sample.row.values()]
    state = step.initial_state(symbols.shape[1])
    force = torch.ones(symbols.shape[1], dtype=torch.bool)
    columns = []
    for t in range(len(symbols)):
        results = step(*state, symbols[t], force, *(n[t] for n in noise), *row)
        state, outputs = results[: len(state)], results[len(state) :]
        columns.append(outputs)
    named = zip(step.output_ports, zip(*columns, strict=True), strict=True)
    return {port.name: torch.stack(values) for port, values in named}


def _clear_of_borders(
    u: Tensor, margin: float, emit: Callable[[Tensor], Sequence[Tensor]], generator: torch.Generator
) -> Tensor:
    """Uniforms `(B,)` that draw the same when they are moved by the margin."""
    for _ in range(_MOST_REDRAWS):
        here = emit(u)[0]
        moved = [
            emit((u + by).clamp(LEAST_UNIFORM, 1 - LEAST_UNIFORM))[0] for by in (-margin, margin)
        ]
        near = torch.stack([(m != here).reshape(len(u), -1).any(1) for m in moved]).any(0)
        if not near.any():
            break
        again = torch.rand(len(u), generator=generator).clamp(min=LEAST_UNIFORM).to(u.dtype)
        u = torch.where(near, again, u)
    return u
