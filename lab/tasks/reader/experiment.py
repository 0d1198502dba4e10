"""The task `reader`: the attentive reader on all 20 bAbI tasks at once."""

from dataclasses import dataclass, field
from pathlib import Path

import torch

from lab.classify import ERROR, NATS, ClassificationExperiment, Examples
from lab.experiment import Figures, Part
from lab.sequences import SequenceClassification
from lab.tasks.reader.data import Stories, read_stories
from lab.tasks.reader.model import AttentiveReader, ReaderConfig
from lab.tasks.reader.parts import parts_of
from lab.tasks.reader.picture import draw
from training.config import Recipe

_POOL = 32  # batches among which stories of similar length are sought
# As many as the batch of an update: of 24, PyTorch rounds its products less.
_EXPORTED_ROWS = 64


@dataclass
class Reading(SequenceClassification):
    """Answers as classes; the test tells the error of each of bAbI's tasks as well."""

    stories: Stories = field(kw_only=True)
    pool: int = _POOL

    def test(self) -> Figures:
        """Over all, and the error of each task, in percent."""
        tasks, figures = self.stories.test_tasks, {}
        for task in tasks.unique().tolist():
            rows = tasks == task
            examples = Examples(self.held_out.inputs[rows], self.held_out.classes[rows])
            found = self.measure(examples)
            figures[f"qa{task}"] = found["error"]
            share = len(examples.classes) / len(tasks)
            for name, value in found.items():
                figures[name] = figures.get(name, 0.0) + share * value
        return figures


class ReaderExperiment(ClassificationExperiment[Stories]):
    """Questions on stories of up to U words."""

    name = "reader"
    title = "the attentive reader on 20 bAbI tasks"
    paper = "section 6.2, figure 2"
    claim = "layer norm learns faster than batch norm in the LSTM or everywhere, and ends better"
    norms = ("layer", "batch", "batch-everywhere", "weight", "none")
    metrics = (ERROR, NATS)
    config = ReaderConfig

    def data(self, recipe: Recipe, source: Path | None) -> Stories:
        return read_stories(source, recipe.data.validation_fraction, recipe.model.words)

    def network(self, config: ReaderConfig, data: Stories) -> AttentiveReader:
        return AttentiveReader(config, len(data.words), len(data.answers))

    def task(self, recipe: Recipe, data: Stories) -> Reading:
        return Reading(
            self.network(recipe.model, data),
            *data.parts,
            recipe.batch.rows,
            recipe.training.seed,
            stories=data,
        )

    def parts(self, task: Reading) -> tuple[Part, ...]:
        rows = torch.linspace(0, len(task.held_out.classes) - 1, _EXPORTED_ROWS).long()
        assert isinstance(task.model, AttentiveReader)
        return parts_of(task.model, task.held_out.inputs[rows])

    def picture(self, task: Reading, folder: Path) -> None:
        assert isinstance(task.model, AttentiveReader)
        draw(task.model, task.stories, folder)


EXPERIMENT = ReaderExperiment()
