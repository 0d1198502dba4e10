"""The task `ranking`: pictures found by caption and captions by picture."""

from pathlib import Path
from typing import Any

from lab.experiment import Experiment, Metric, Part
from lab.tasks.ranking.data import Captioned, read_captioned
from lab.tasks.ranking.model import (
    RankingConfig,
    RankingModel,
    SentenceStep,
    picture_step,
    read,
    seen,
)
from lab.tasks.ranking.score import AT
from lab.tasks.ranking.sheet import draw
from lab.tasks.ranking.task import Ranking
from training.config import Recipe

_EXPORTED_ROWS = 32


class RankingExperiment(Experiment[Captioned]):
    """Order embeddings of emoji and their names."""

    name = "ranking"
    title = "pictures and captions in one order"
    paper = "section 6.1, figure 1, table 2"
    claim = "layer norm is at its best in 60% of the time, and ranks better in the end"
    metrics = (
        Metric(name="rank", label="mean rank, both ways"),
        *(Metric(name=f"pictures R@{k}", label=f"pictures found, R@{k}, %", higher_is_better=True)
          for k in AT),
        Metric(name="pictures rank", label="mean rank of pictures", plotted=False),
        *(Metric(name=f"captions R@{k}", label=f"captions found, R@{k}, %", higher_is_better=True,
                 plotted=False) for k in AT),
        Metric(name="captions rank", label="mean rank of captions", plotted=False),
    )  # fmt: skip
    config = RankingConfig

    def data(self, recipe: Recipe, source: Path | None) -> Captioned:
        return read_captioned(source, recipe.model.language, recipe.data.validation_fraction)

    def facts(self, data: Captioned) -> dict[str, Any]:
        return data.facts()

    def task(self, recipe: Recipe, data: Captioned) -> Ranking:
        model = RankingModel(recipe.model, data.vocabulary)
        return Ranking(model, data, recipe.batch.rows, recipe.training.seed)

    def parts(self, task: Ranking) -> tuple[Part, ...]:
        pairs = task.data.test[:_EXPORTED_ROWS]
        pictures, words = {"picture": task.pictures(pairs)}, {"word": task.captions(pairs)}
        return (
            Part(name="picture", step=picture_step, trained=seen, inputs=pictures),
            Part(name="sentence", step=SentenceStep, trained=read, inputs=words, scan=True),
        )

    def picture(self, task: Ranking, folder: Path) -> None:
        draw(task, folder / f"{self.name}-found.png")


EXPERIMENT = RankingExperiment()
