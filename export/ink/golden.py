"""Golden vectors of a handwriting model: ink it wrote itself, with what training computed for it.

A replay forces the stored points and compares, at every step, the mixture and the point the graph
would have drawn, so an error of rounding is measured where it arises and is not fed back.
Shapes: T points, B rows, R raw outputs of the mixture.
"""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from contract.alphabets import END, WINDOW_SYMBOLS, encode
from contract.golden import Arrays, Golden
from contract.noise import LEAST_UNIFORM, InkNoise
from export.golden import BOUND_FACTOR, MARGIN, Sample, draw, read
from models import mixture
from models.generation import HandwritingStep
from models.handwriting import HandwritingModel, Text

_SEED = 20160721  # any constant: the same model always gets the same golden vectors
_POINTS = 160
# How neat each golden row is, from the distribution as learned on.
_BIASES = (0.0, 0.5, 1.0, 2.0)
_SAMPLE_BIAS = 0.5
# Invented. The first is over long before the vectors are, the others never are.
_TEXTS = (
    "A keel",
    "Zoe quickly mixed 75% of the vinegar & oil",
    "Why, a king's jury of 12 sat by the river!",
    "Pack my box with five dozen liquor jugs #8",
    "Every layer keeps its own even keel (Ex. 4)",
)


def options(biases: tuple[float, ...]) -> dict[str, Tensor]:
    """Row inputs: a bias each, and the texts of golden vectors and reports over and over."""
    texts = [encode(_TEXTS[i % len(_TEXTS)]) for i in range(len(biases))]
    symbols = torch.full((len(biases), WINDOW_SYMBOLS), END)
    for row, text in zip(symbols, texts, strict=True):
        row[: len(text)] = torch.tensor(text)
    length = torch.tensor([len(text) for text in texts])
    return {"bias": torch.tensor(biases), "text": symbols, "length": length}


def noise(seed: int, steps: int, batch: int) -> Arrays:
    """What requests with this seed and choices 0 to B - 1 draw with: uniforms `(T, B)`,
    normals `(T, B, 2)`."""
    taken = [InkNoise(seed, choice).take(0, steps) for choice in range(batch)]
    uniforms, normals = (np.stack(arrays, axis=1) for arrays in zip(*taken, strict=True))
    return {"uniform": uniforms, "normal": normals}


def sample(
    model: HandwritingModel,
    steps: int,
    batch: int,
    seed: int,
    margin: float = 0.0,
    biases: tuple[float, ...] = (),
) -> Sample:
    """What the model writes in training mode: the first rows as neatly as they say."""
    model.train()
    row = options((*biases, *[_SAMPLE_BIAS] * (batch - len(biases))))
    return draw(HandwritingStep(model), row, noise(seed, steps, batch), margin, seed)


@torch.no_grad()
def training_mixtures(model: nn.Module, of: Sample) -> Tensor:
    """What training computes for the points of a sample: raw outputs `(T, B, R)` for each, given
    those before. Training mode, the batched code path of the loss, starting states zero."""
    assert isinstance(model, HandwritingModel)
    points = of.symbols.to(model.readout.weight.dtype)
    inputs = torch.cat([torch.zeros_like(points[:1]), points[:-1]])
    text = Text(of.row["text"], of.row["length"])
    raw, _ = model.train()(inputs, text, model.initial_state(points.shape[1]))
    return torch.as_tensor(raw)


def drawn_from(raw: Tensor, of: Sample, nudge: float = 0.0) -> Tensor:
    """The points `(T, B, 3)` that mixtures `(T, B, R)` give with a sample's noise, its uniforms
    moved by `nudge`."""
    real, bias = raw.dtype, of.row["bias"].to(raw.dtype)
    uniforms = (of.noise["uniform"] + nudge).clamp(LEAST_UNIFORM, 1 - LEAST_UNIFORM).to(real)
    rows = zip(raw, uniforms, of.noise["normal"].to(real), strict=True)
    return torch.stack([mixture.sample(r, u, n, bias) for r, u, n in rows])


def golden(model: HandwritingModel, facts: dict[str, Any]) -> Golden:
    """Rows of several texts, each of another neatness, at the batch of training."""
    batch = facts["batch"]["rows"]
    batches = -(-len(_BIASES) // batch)
    drawn = sample(model, _POINTS, batches * batch, _SEED, MARGIN, _BIASES)

    def in_batches(network: HandwritingModel) -> Tensor:
        parts = [drawn.of(slice(i * batch, (i + 1) * batch)) for i in range(batches)]
        return torch.cat([training_mixtures(network, part) for part in parts], dim=1)

    float32, float64 = in_batches(model), in_batches(copy.deepcopy(model).double())
    points = drawn_from(float64, drawn)
    wide = read(HandwritingStep(copy.deepcopy(model).double()), drawn)
    kept = slice(len(_BIASES))
    error = (float32.double() - float64).abs()
    moved = (drawn_from(float32, drawn) - points).abs()
    mine = drawn.of(kept)
    return Golden(
        steps=mine.read(),
        rows=mine.rows(),
        filtered=np.zeros(len(_BIASES), bool),
        truth={"mixture": float64[:, kept].numpy(), "drawn": points[:, kept].numpy()},
        bounds={
            "mixture": BOUND_FACTOR * error.max().item(),
            "drawn": BOUND_FACTOR * moved.max().item(),
        },
        exact={name: wide[name][:, kept].numpy() for name in ("character", "ended")},
        training_error=error[:, kept].max().item(),
    )
