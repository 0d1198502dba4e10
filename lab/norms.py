"""What layer norm buys: twins, each of another norm and at its best rate, `python -m lab norms`.

For each: the loss training computes, the loss of what is served, the same at a batch of four and on
segments three times as long as those of training; and how fast a perturbation of the zero state
grows. Under batch norm alone training begins every segment from that state, as all are measured.
Shapes: T steps.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from contract.alphabets import START_TOKEN
from export.results import machine, write_json
from models.cells import CELLS, CellKind, State
from models.language import LanguageConfig, LanguageModel
from models.norms import NormKind
from training import checkpoint
from training.config import Recipe
from training.loop import CHECKPOINT
from training.text.data import read_corpus, streams

NORMS: tuple[NormKind, ...] = ("layer", "batch", "weight", "none")
RATES = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
LONGER = 3
SMALL_BATCH = 4
PERTURBATION = 1e-14
GROWTH_STEPS = 200
FRESH_NORMS: tuple[NormKind, ...] = ("layer", "none")


@dataclass(frozen=True, slots=True)
class Twin:
    """Nats per byte of one twin on the validation text, every segment from the zero state.

    `training` is training mode at the batch it was trained with, `served` evaluation mode: the
    running statistics under batch norm, the very same numbers under any other.
    """

    norm: NormKind
    rate: float
    training: float
    served: float
    training_small_batch: float
    training_longer: float
    served_longer: float


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What became of a change of 1e-14 in every state of a float64 network: max |change of h|."""

    network: str
    norm: NormKind
    after_50: float
    after_200: float


def contrast_twins(
    runs: Mapping[NormKind, Mapping[float, Path | None]], recipe: Recipe, out: Path, command: str
) -> None:
    """Measure trained twins, the run of each norm whose rate has the least loss served, of rates
    at which it did not diverge, which have none; print two tables and write `contrast.json` into
    `out`, with the `command` that was asked for them. Raises `ValueError` for a norm without."""
    corpus = read_corpus(recipe.data.source)
    text = corpus.split(recipe.data.validation_fraction)[1]
    rows, steps = recipe.batch.rows, recipe.batch.steps
    rates, twins, models = {}, list[Twin](), dict[NormKind, LanguageModel]()
    for norm, of_norm in runs.items():
        found = {rate: load_twin(run) for rate, run in of_norm.items() if run is not None}
        if not found:
            raise ValueError(f"{norm}: it diverged at every rate")
        served = {r: loss(m, text, rows, steps, training=False) for r, m in found.items()}
        rates[norm] = {f"{rate:g}": served.get(rate) for rate in of_norm}
        best = min(served, key=lambda rate: served[rate])
        models[norm] = found[best]
        twins.append(measure(norm, best, found[best], text, rows, steps))
    print(f"{'norm':8}{'rate':>7}{'training':>10}{'served':>10}{'gap':>11}{'batch 4':>10}"
          f"{'3x longer':>11}{'served':>10}")  # fmt: skip
    for t in twins:
        print(
            f"{t.norm:8}{t.rate:7g}{t.training:10.4f}{t.served:10.4f}"
            f"{t.served - t.training:+11.1e}{t.training_small_batch:10.4f}"
            f"{t.training_longer:11.4f}{t.served_longer:10.4f}"
        )
    perturbations = [perturb_fresh(cell, norm) for cell in CELLS for norm in FRESH_NORMS]
    perturbations += [perturb_trained(norm, model, text) for norm, model in models.items()]
    for p in perturbations:
        print(
            f"{p.network:14}{p.norm:7}1e-14 becomes {p.after_50:.0e} in 50 steps, "
            f"{p.after_200:.0e} in 200"
        )
    content = {
        "command": command,
        "machine": machine(),
        "recipe": asdict(recipe),
        "validation_bytes": len(text),
        "rates": rates,
        "twins": [asdict(t) for t in twins],
        "perturbations": [asdict(p) for p in perturbations],
    }
    write_json(out / "contrast.json", content)


def load_twin(run: Path) -> LanguageModel:
    """The best averaged weights of a run, with its running statistics if it has any."""
    tensors, facts = checkpoint.load(run / CHECKPOINT)
    model = LanguageModel(LanguageConfig(**facts["model"]))
    model.load_state_dict(checkpoint.group(tensors, "model") | checkpoint.group(tensors, "best"))
    return model


def measure(
    norm: NormKind, rate: float, model: LanguageModel, text: Tensor, rows: int, steps: int
) -> Twin:
    """The losses of one trained twin."""
    return Twin(
        norm=norm,
        rate=rate,
        training=loss(model, text, rows, steps, training=True),
        served=loss(model, text, rows, steps, training=False),
        training_small_batch=loss(model, text, SMALL_BATCH, steps, training=True),
        training_longer=loss(model, text, rows, LONGER * steps, training=True),
        served_longer=loss(model, text, rows, LONGER * steps, training=False),
    )


@torch.no_grad()
def loss(model: LanguageModel, text: Tensor, rows: int, steps: int, *, training: bool) -> float:
    """Mean nats per byte over whole segments `(steps, rows)`, each from the zero state."""
    model.train(training)
    laid = streams(text, rows)
    total = count = 0.0
    for segment in laid.split(steps):
        if len(segment) < steps:
            break
        inputs = torch.cat([torch.full_like(segment[:1], START_TOKEN), segment[:-1]])
        logits, _ = model.forward(inputs, model.initial_state(rows))
        nats = F.cross_entropy(logits.flatten(0, 1), segment.flatten(), reduction="sum")
        total, count = total + nats.item(), count + segment.numel()
    return total / count


def perturb_fresh(kind: CellKind, norm: NormKind, units: int = 256) -> Perturbation:
    """A cell with random weights, on random inputs."""
    torch.manual_seed(0)
    cell = CELLS[kind](32, units, norm).double()
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(GROWTH_STEPS, 1, 32, generator=generator, dtype=torch.float64)
    projected = cell.project(x)
    distances = _grow(cell.initial_state(1), lambda t, state: cell.step(projected[t], state))
    return Perturbation(f"fresh {kind}", norm, distances[49], distances[-1])


def perturb_trained(norm: NormKind, model: LanguageModel, text: Tensor) -> Perturbation:
    """A trained twin as it is served, reading the validation text."""
    wide = copy.deepcopy(model).double().eval()
    tokens = text[:GROWTH_STEPS].long().unsqueeze(-1)  # (T, 1)
    distances = _grow(wide.initial_state(1), lambda t, state: wide.step(tokens[t], state)[1])
    return Perturbation("trained lstm", norm, distances[49], distances[-1])


@torch.no_grad()
def _grow(state: State, step: Callable[[int, State], State]) -> list[float]:
    """Run twice, once from a state moved by 1e-14; the distance of h after each step."""
    moved = tuple(s + PERTURBATION if s.is_floating_point() else s for s in state)
    distances = []
    for t in range(GROWTH_STEPS):
        state, moved = step(t, state), step(t, moved)
        distances.append((state[0] - moved[0]).abs().max().item())
    return distances
