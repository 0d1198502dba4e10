"""A tiny text, a recipe that trains on it in a second or two, and how to look into a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from models.language import LanguageConfig
from training import checkpoint
from training.config import BatchConfig, DataConfig, Recipe, TrainConfig
from training.loop import CHECKPOINT, Trainer
from training.run import carry_out

TEXT = "".join(f"The {i}th line says that {i * 7} sheep sat, sleeping.\n" for i in range(300))
SHORT = TEXT[: len(TEXT) // 4]  # 21 updates an epoch instead of 84


def tiny_recipe(source: Path, rows: int = 8, **training: object) -> Recipe:
    settings = {"epochs": 3, "warmup_updates": 5, "learning_rate": 1e-2, "average_decay": 0.9}
    return Recipe(
        kind="language",
        data=DataConfig(source=str(source)),
        model=LanguageConfig(
            units=24,
            embedding=8,
            layers=2,
            input_dropout=0.1,
            recurrent_dropout=0.1,
            output_dropout=0.1,
        ),
        batch=BatchConfig(rows=rows, steps=20),
        training=TrainConfig(**(settings | training)),  # type: ignore[arg-type]
    )


def write_corpus(folder: Path, text: str = TEXT) -> Path:
    """The text as the only file of a folder, so that nothing else is found beside it."""
    path = folder / "sheep.txt"
    path.write_text(text)
    return path


def write_run(corpus: Path, folder: Path) -> Path:
    """A finished run of the tiny recipe."""
    carry_out(tiny_recipe(corpus), folder / "tiny", "cpu", Path())
    return folder / "tiny"


@contextmanager
def undrawn() -> Iterator[None]:
    """No run is drawn, which takes as long as twenty updates of a tiny one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.run._plot", lambda *_: None)
        yield


def tensors(run: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load(run / CHECKPOINT)[0]


class Interrupted(Exception):
    """What `stop_after` raises."""


def stop_after(monkeypatch: pytest.MonkeyPatch, updates: int) -> None:
    """Interrupt any training before the update of this number."""
    whole = Trainer._update

    def update(self: Trainer) -> torch.Tensor:
        if self.progress.update == updates:
            raise Interrupted
        return whole(self)

    monkeypatch.setattr(Trainer, "_update", update)


def stop_in_validation(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Interrupt any training in the validation of this number, from 1."""
    whole, count = Trainer._validate, iter(range(1, number + 1))

    def stop() -> float:
        raise Interrupted

    def validate(self: Trainer) -> float:
        if next(count) == number:
            monkeypatch.setattr(self.task, "validate", stop)
        return whole(self)

    monkeypatch.setattr(Trainer, "_validate", validate)
