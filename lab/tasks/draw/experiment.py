"""The task `draw`: DRAW with selective attention on binarised MNIST."""

from pathlib import Path
from typing import Any

import torch

from lab.experiment import Experiment, Part
from lab.tasks.draw.data import Ink, read_ink
from lab.tasks.draw.model import Draw, DrawConfig
from lab.tasks.draw.step import drawn, step
from lab.tasks.draw.task import METRICS, DrawTask
from training.config import Recipe

_EXPORTED_ROWS = 32


class DrawExperiment(Experiment[Ink]):
    """An LSTM that looks and one that draws."""

    name = "draw"
    title = "drawing digits"
    paper = "section 6.4, figure 4"
    claim = (
        "layer norm converges almost twice as fast, and ends at 82.09 nats where none ends at 82.36"
    )
    metrics = METRICS
    config = DrawConfig

    def data(self, recipe: Recipe, source: Path | None) -> Ink:
        return read_ink(source, recipe.data.validation_fraction)

    def facts(self, data: Ink) -> dict[str, Any]:
        return data.digits.facts() | {"sha256": data.sha256, "binarised": True}

    def task(self, recipe: Recipe, data: Ink) -> DrawTask:
        return DrawTask(Draw(recipe.model), data.pictures, recipe.batch.rows, recipe.training.seed)

    def parts(self, task: DrawTask) -> tuple[Part, ...]:
        noise = task.noise(_EXPORTED_ROWS, torch.Generator().manual_seed(0))
        part = Part(name="decoder", step=step, trained=drawn, inputs={"noise": noise}, scan=True)
        return (part,)

    def picture(self, task: DrawTask, folder: Path) -> None:
        from lab.tasks.draw.pictures import draw_film, draw_samples, save_decoder

        draw_samples(task, folder / "draw-samples.png")
        draw_film(task, folder / "draw-film.png")
        save_decoder(task, folder / "draw-decoder.safetensors")


EXPERIMENT = DrawExperiment()
