"""A run of the tiny recipe, made once."""

from pathlib import Path

import pytest
import torch

from tests.training.tiny import write_corpus, write_run

# Two threads that wait for each other at every tiny operation are slower than one.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the tiny recipe; nobody may change it."""
    return write_run(corpus, tmp_path_factory.mktemp("run"))
