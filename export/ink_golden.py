"""Golden vectors of a handwriting model: ink it wrote itself, with what training computed for it.

A replay forces the stored points and compares, at every step, the mixture and the point the graph
would have drawn, so an error of rounding is measured where it arises and is not fed back.
Shapes: T points, B rows, R raw outputs of the mixture.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from export.golden import BOUND_FACTOR, initial_state
from models import mixture
from models.generation import HandwritingStep
from models.handwriting import END, LONGEST_TEXT, HandwritingModel, Text, encode

# Draws closer than this to another case of the mixture are drawn again; see `export.golden`.
_MARGIN = 1e-3
_BIAS = 0.5
# Invented, and too long to be over before the vectors are.
_TEXTS = (
    "Zoe quickly mixed 75% of the vinegar & oil",
    "Why, a king's jury of 12 sat by the river!",
    "Pack my box with five dozen liquor jugs #8",
    "Every layer keeps its own even keel (Ex. 4)",
)


@dataclass(frozen=True, slots=True)
class Noise:
    """What decides the draws: uniforms `(T, B)`, normals `(T, B, 2)`, and the bias `(B,)`."""

    uniforms: Tensor
    normals: Tensor
    bias: Tensor


@dataclass(frozen=True, slots=True)
class InkSample:
    """Points a model drew `(T, B, 3)` for texts, and the noise that made it draw them."""

    points: Tensor
    text: Text
    noise: Noise


def sample_texts(batch: int) -> Text:
    """The texts of golden vectors and parity reports, over and over: `(B, U)` and `(B,)`."""
    texts = [encode(_TEXTS[i % len(_TEXTS)]) for i in range(batch)]
    symbols = torch.full((batch, LONGEST_TEXT), END)
    for row, text in zip(symbols, texts, strict=True):
        row[: len(text)] = torch.tensor(text)
    return Text(symbols, torch.tensor([len(text) for text in texts]))


@torch.no_grad()
def draw_ink(
    model: HandwritingModel, steps: int, batch: int, seed: int, margin: float = 0.0
) -> InkSample:
    """Let the model write: every point drawn by the served sampler, in PyTorch, training mode.

    With a `margin`, uniforms within it of another pen or Gaussian are replaced.
    """
    model.train()
    step = HandwritingStep(model)
    generator = torch.Generator().manual_seed(seed)
    real = model.readout.weight.dtype
    text = sample_texts(batch)
    noise = Noise(
        torch.rand(steps, batch, generator=generator).clamp(2**-24, 1 - 2**-24).to(real),
        torch.randn(steps, batch, 2, generator=generator).to(real),
        torch.full((batch,), _BIAS, dtype=real),
    )
    free, unused = torch.zeros(batch, dtype=torch.bool), torch.zeros(batch, 3, dtype=real)
    state, points = initial_state(step, batch), []
    for u, normal in zip(noise.uniforms, noise.normals, strict=True):
        results = step(*state, unused, free, u, normal, noise.bias, *text)
        raw = results[len(step.state_ports) + 1]
        if margin:
            u.copy_(_clear_of_borders(raw, u, normal, noise.bias, margin, generator))
            results = step(*state, unused, free, u, normal, noise.bias, *text)
        state = results[: len(step.state_ports)]
        points.append(state[0])
    return InkSample(torch.stack(points), text, noise)


@torch.no_grad()
def training_mixtures(model: HandwritingModel, sample: InkSample) -> Tensor:
    """What training computes for the points of a sample: raw outputs `(T, B, R)` for each, given
    those before. Training mode, the batched code path of the loss, starting states zero."""
    points = sample.points.to(model.readout.weight.dtype)
    inputs = torch.cat([torch.zeros_like(points[:1]), points[:-1]])
    raw, _ = model.train()(inputs, sample.text, model.initial_state(points.shape[1]))
    return torch.as_tensor(raw)


def drawn_from(raw: Tensor, noise: Noise) -> Tensor:
    """The points `(T, B, 3)` that mixtures `(T, B, R)` give with this noise."""
    real = raw.dtype
    rows = zip(raw, noise.uniforms.to(real), noise.normals.to(real), strict=True)
    return torch.stack([mixture.sample(r, u, n, noise.bias.to(real)) for r, u, n in rows])


def ink_golden_vectors(
    model: HandwritingModel, steps: int, batch: int, rows: int, seed: int
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """The tensors of `golden.safetensors` and the bounds on a replay's errors, by output.

    Training mode runs at the batch of training; the first `rows` rows are kept.
    """
    sample = draw_ink(model, steps, batch, seed, _MARGIN)
    float32 = training_mixtures(model, sample)
    float64 = training_mixtures(copy.deepcopy(model).double(), sample)
    drawn = drawn_from(float64, sample.noise)
    bounds = {
        "mixture": BOUND_FACTOR * (float32.double() - float64).abs().max().item(),
        "drawn": BOUND_FACTOR * (drawn_from(float32, sample.noise) - drawn).abs().max().item(),
    }
    by_step = {
        "points": sample.points,
        "uniforms": sample.noise.uniforms,
        "normals": sample.noise.normals,
        "mixture_float32": float32,
        "mixture_float64": float64,
        "drawn_float64": drawn,
    }
    by_row = {"text": sample.text.symbols, "length": sample.text.length, "bias": sample.noise.bias}
    kept = {name: t[:, :rows].contiguous() for name, t in by_step.items()}
    return kept | {name: t[:rows].contiguous() for name, t in by_row.items()}, bounds


def _clear_of_borders(
    raw: Tensor, u: Tensor, normal: Tensor, bias: Tensor, margin: float, generator: torch.Generator
) -> Tensor:
    def point(at: Tensor) -> Tensor:
        return mixture.sample(raw, at.clamp(2**-24, 1 - 2**-24), normal, bias)

    while True:
        here = point(u)
        near = (point(u - margin) != here) | (point(u + margin) != here)
        if not near.any():
            return u
        again = torch.rand(len(u), generator=generator).to(u.dtype)
        u = torch.where(near.any(-1), again, u)
