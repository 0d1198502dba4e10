"""Invented lines of a few writers, and the tasks and recipes that learn from them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from models.handwriting import HandwritingConfig, HandwritingModel
from models.reader import ReaderConfig, make_reader
from training.config import BatchConfig, DataConfig, Recipe, TrainConfig
from training.ink.corpus import PenCorpus
from training.ink.line import Tally
from training.ink.prepare import Ink, prepare
from training.ink.rows import RowTask
from training.ink.synthetic import synthetic_lines
from training.ink.task import PenTask
from training.reader.task import ReaderTask

PEN = HandwritingConfig(units=16, mixtures=3, window=2, embedding=5)
ROWS = 6

Make = Callable[..., RowTask]


def invented() -> PenCorpus:
    """Synthetic lines, five to a writer, so that rows are put together; made anew each time."""
    inks = prepare(synthetic_lines(150, 4), Tally())
    assert len(inks) > 100
    return PenCorpus(
        "invented",
        [Ink(i.text, i.offsets, i.advance, f"w{n // 5}", i.source) for n, i in enumerate(inks)],
    )


def pen_task(pens: PenCorpus, seed: int = 0, rank: int = 0, world: int = 1) -> PenTask:
    torch.manual_seed(0)
    train, validation = pens.split(0.2)
    return PenTask(HandwritingModel(PEN), train, validation[:20], ROWS, seed, rank, world)


def reader_task(pens: PenCorpus, seed: int = 0, rank: int = 0, world: int = 1) -> ReaderTask:
    torch.manual_seed(0)
    train, validation = pens.split(0.2)
    model = make_reader(ReaderConfig(units=12))
    return ReaderTask(model, train, validation[:20], ROWS, seed, rank, world)


@contextmanager
def judged_by_short_rows() -> Iterator[None]:
    """Of as many rows: those of 20 characters take a pen as long to judge as ten updates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.ink.rows._VALIDATION_CHARACTERS", 4)
        yield


def pen_recipe(source: Path) -> Recipe:
    return Recipe(
        kind="handwriting",
        data=DataConfig(source=str(source), validation_fraction=0.2),
        model=PEN,
        batch=BatchConfig(rows=ROWS),
        training=TrainConfig(
            epochs=1.0, warmup_updates=5, learning_rate=1e-2, average_decay=0.8, seed=1
        ),
    )


def reader_recipe(source: Path) -> Recipe:
    return Recipe(
        kind="reader",
        data=DataConfig(source=str(source), validation_fraction=0.2),
        model=ReaderConfig(units=16, output_dropout=0.1),
        batch=BatchConfig(rows=ROWS),
        training=TrainConfig(epochs=1.0, learning_rate=1e-2, warmup_updates=5, average_decay=0.9),
    )
