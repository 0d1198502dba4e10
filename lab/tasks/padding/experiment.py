"""The task `padding`: questions of TREC by self-attention, at several shares of padding."""

from dataclasses import dataclass, replace
from pathlib import Path

from lab.classify import ERROR, NATS, ClassificationExperiment
from lab.experiment import Figures
from lab.sequences import SequenceClassification, lengths_of
from lab.tasks.padding.data import Sentences, read_sentences
from lab.tasks.padding.model import PaddingConfig, SentenceClassifier
from lab.tasks.padding.movement import movement
from lab.tasks.padding.picture import draw
from training.config import Recipe
from training.task import Batch

_MOVED_BATCHES = 8


@dataclass
class Padded(SequenceClassification):
    """Every batch is as wide as the share of padding asks, or as its longest sentence."""

    padding: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        lengths = lengths_of(self.train.inputs).double()
        self.width = round(lengths.mean().item() / (1 - self.padding))

    def batch(self, update: int) -> tuple[Batch, bool]:
        (words, classes), anew = super().batch(update)
        longest = int(lengths_of(words).max())
        width = max(longest, self.width) if self.padding else longest
        return (words[:, :width], classes), anew

    def test(self) -> Figures:
        """With the share of positions that are padding in some batches of training, in percent, and
        what standing in those batches does to a row."""
        batches = [self.batch(update)[0][0] for update in range(_MOVED_BATCHES)]
        places = sum(batch.numel() for batch in batches)
        words = sum(int(lengths_of(batch).sum()) for batch in batches)
        share = {"padding": 100 * (1 - words / places)}
        return self.measure(self.held_out) | share | movement(self.model, batches)


class PaddingExperiment(ClassificationExperiment[Sentences]):
    """One layer of self-attention."""

    name = "padding"
    title = "self-attention over padded sentences"
    paper = "sections 1 and 3"
    claim = "layer norm does not see the rows beside a row, nor padding; batch norm does"
    norms = ("layer", "batch", "batch-masked", "none")
    metrics = (ERROR, replace(NATS, plotted=False))
    config = PaddingConfig
    port = "words"
    exported_rows = 32

    def data(self, recipe: Recipe, source: Path | None) -> Sentences:
        return read_sentences(source, recipe.data.validation_fraction, recipe.model.places)

    def network(self, config: PaddingConfig, data: Sentences) -> SentenceClassifier:
        return SentenceClassifier(config, data.words, data.classes)

    def task(self, recipe: Recipe, data: Sentences) -> Padded:
        rows = recipe.batch.rows
        return Padded(
            self.network(recipe.model, data),
            *data.parts,
            rows,
            recipe.training.seed,
            pool=1 if recipe.model.padding else len(data.train.classes) // rows,
            padding=recipe.model.padding,
        )

    def picture(self, task: Padded, folder: Path) -> None:
        draw(folder)


EXPERIMENT = PaddingExperiment()
