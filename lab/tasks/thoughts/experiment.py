"""The task `thoughts`: skip-thoughts, and what probes read off them."""

import json
from pathlib import Path
from typing import Any

from lab.experiment import Experiment, Metric, Part
from lab.tasks.thoughts.data import read_stories
from lab.tasks.thoughts.model import ThoughtsConfig, ThoughtsModel, ThoughtStep, read
from lab.tasks.thoughts.panels import draw
from lab.tasks.thoughts.probe_data import CLASSED, read_probes
from lab.tasks.thoughts.task import Material, Thoughts
from training.config import Recipe

_EXPORTED_ROWS = 32


class ThoughtsExperiment(Experiment[Material]):
    """Sentences of novels and plays, probed on six sets."""

    name = "thoughts"
    title = "skip-thoughts"
    paper = "section 6.3, figure 3, table 3"
    claim = "layer norm learns faster, and its vectors are better at every probe"
    metrics = (
        Metric(name="nats", label="validation nats of a word"),
        Metric(name="SICK r", label="relatedness, Pearson r", higher_is_better=True, plotted=False),
        Metric(name="SICK rho", label="relatedness, Spearman rho", higher_is_better=True,
               plotted=False),
        Metric(name="SICK MSE", label="relatedness, squared error", plotted=False),
        *(Metric(name=name, label=f"{name}, accuracy, %", higher_is_better=True, plotted=False)
          for name in CLASSED),
    )  # fmt: skip
    config = ThoughtsConfig

    def data(self, recipe: Recipe, source: Path | None) -> Material:
        fraction = recipe.data.validation_fraction
        stories = read_stories(source, recipe.model.vocabulary, fraction)
        return Material(stories, read_probes(source), recipe.model)

    def facts(self, data: Material) -> dict[str, Any]:
        """With the probes of two baselines, which no norm changes."""
        told = {name: {figure: round(value, 3) for figure, value in figures.items()}
                for name, figures in data.baselines.items()}  # fmt: skip
        return data.stories.facts() | {"probes": told}

    def task(self, recipe: Recipe, data: Material) -> Thoughts:
        model = ThoughtsModel(recipe.model, data.stories.vocabulary.size)
        return Thoughts(model, data, recipe.batch.rows, recipe.training.seed)

    def parts(self, task: Thoughts) -> tuple[Part, ...]:
        words = {"word": task.words(task.stories.test[:_EXPORTED_ROWS])}
        return (Part(name="encoder", step=ThoughtStep, trained=read, inputs=words, scan=True),)

    def picture(self, task: Thoughts, folder: Path) -> None:
        content = json.loads((folder / f"{self.name}.json").read_text("utf-8"))
        draw(content, folder / f"{self.name}-probes.png")


EXPERIMENT = ThoughtsExperiment()
