"""What both files of tests share: the third kind, and an artifact of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from export.convert import convert
from tests.kinds.waves import registered
from tests.kinds.waves.model import WaveConfig
from training.config import BatchConfig, DataConfig, Recipe, TrainConfig
from training.run import carry_out

# Two threads that wait for each other at every tiny operation are slower than one.
torch.set_num_threads(1)


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    with registered():
        yield


@pytest.fixture(scope="session")
def sines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact of it, trained and converted like any other; nobody may change it."""
    folder = tmp_path_factory.mktemp("waves")
    recipe = Recipe(
        kind="waves",
        data=DataConfig(source="sines"),
        model=WaveConfig(),
        batch=BatchConfig(rows=8, steps=40),
        training=TrainConfig(epochs=2, learning_rate=1e-2, warmup_updates=5, average_decay=0.9),
    )
    with registered():
        carry_out(recipe, folder / "run", "cpu", Path())
        convert(folder / "run", folder / "sines")
    return folder / "sines"
