"""A tiny text and a recipe that trains on it in a second or two."""

from pathlib import Path

from models.language import LanguageConfig
from training.loop import TrainConfig
from training.recipe import BatchConfig, DataConfig, Recipe

TEXT = "".join(f"The {i}th line says that {i * 7} sheep sat, sleeping.\n" for i in range(300))


def tiny_recipe(source: Path, **training: object) -> Recipe:
    settings = {"epochs": 3, "warmup_updates": 5, "learning_rate": 1e-2, "average_decay": 0.9}
    return Recipe(
        data=DataConfig(source=str(source)),
        model=LanguageConfig(
            units=24,
            embedding=8,
            layers=2,
            input_dropout=0.1,
            recurrent_dropout=0.1,
            output_dropout=0.1,
        ),
        batch=BatchConfig(rows=8, steps=20),
        training=TrainConfig(**(settings | training)),  # type: ignore[arg-type]
    )
