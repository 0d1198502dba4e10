"""A run of the tiny recipe and its artifact, made once."""

from pathlib import Path

import pytest
import torch

from tests.export.tiny import TEXT, tiny_recipe
from training.run import carry_out

# Two threads that wait for each other at every tiny operation are slower than one.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "sheep.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="session")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the tiny recipe."""
    folder = tmp_path_factory.mktemp("run") / "tiny"
    carry_out(tiny_recipe(corpus), folder, "cpu", Path())
    return folder


@pytest.fixture(scope="session")
def artifact(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact of that run."""
    from export.convert import convert

    folder = tmp_path_factory.mktemp("artifacts") / "tiny"
    convert(run, folder)
    return folder
