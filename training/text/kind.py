"""Language models as a kind that can be trained."""

from typing import Any

from models.language import LanguageConfig, LanguageModel
from training.config import Place, Recipe
from training.task import Task
from training.text.data import read_corpus
from training.text.task import LanguageTask


class TextTraining:
    """Bytes of a text, the next one from those before."""

    name = "language"
    unit = "byte"
    calibrates = True
    options = frozenset({"steps"})
    config = LanguageConfig

    def model(self, hyperparameters: dict[str, Any]) -> LanguageModel:
        rates = {"input_dropout": 0.0, "recurrent_dropout": 0.0, "output_dropout": 0.0}
        return LanguageModel(LanguageConfig(**hyperparameters | rates))

    def task(self, recipe: Recipe, source: str, place: Place) -> tuple[Task, dict[str, Any]]:
        corpus = read_corpus(source)
        task = LanguageTask(
            LanguageModel(recipe.model).to(place.device),
            *corpus.split(recipe.data.validation_fraction),
            batch_size=recipe.batch.rows,
            steps=recipe.batch.steps,
            seed=recipe.training.seed,
            rank=place.rank,
            world=place.world,
        )
        return task, {
            "name": corpus.name,
            "sha256": corpus.sha256,
            "bytes": len(corpus.content),
        }
