"""What is exported of a pen: the step that is served, reading points. T points, B rows."""

import torch
from torch.nn import functional as F

from contract.alphabets import END, WINDOW_SYMBOLS
from lab.experiment import Named
from models.generation import HandwritingStep
from models.handwriting import HandwritingModel, Text


def step(model: HandwritingModel) -> HandwritingStep:
    """What is exported."""
    return HandwritingStep(model)


def mixtures(model: HandwritingModel, inputs: Named) -> Named:
    """What training computes: the raw mixture of every point from those before."""
    points = inputs["forced"]
    before = torch.cat([torch.zeros_like(points[:1]), points[:-1]])
    text = Text(inputs["text"], inputs["length"])
    raw, _ = model(before, text, model.initial_state(points.shape[1]))
    return {"mixture": raw}


def reading(points: torch.Tensor, text: Text) -> Named:
    """The inputs of a step that reads `points (T, B, 3)`, each forced on it."""
    steps, rows = points.shape[:2]
    return {
        "forced": points,
        "force": torch.ones(steps, rows, dtype=torch.bool),
        "uniform": torch.full((steps, rows), 0.5),
        "normal": torch.zeros(steps, rows, 2),
        "bias": torch.zeros(rows),
        "text": F.pad(text.symbols, (0, WINDOW_SYMBOLS - text.symbols.shape[1]), value=END),
        "length": text.length,
    }
