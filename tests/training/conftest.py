"""A run of the tiny recipe and invented ink, made once."""

from pathlib import Path

import pytest
import torch

from tests.training.pens import invented
from tests.training.tiny import write_corpus, write_run
from training.ink.corpus import PenCorpus

# Two threads that wait for each other at every tiny operation are slower than one.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the tiny recipe; nobody may change it."""
    return write_run(corpus, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="session")
def pens() -> PenCorpus:
    """Lines of invented ink; nobody may change them."""
    return invented()


@pytest.fixture(scope="session")
def saved_pens(pens: PenCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first of them as a file."""
    path = tmp_path_factory.mktemp("pens") / "few.npz"
    PenCorpus("few", pens.inks[:60]).save(path)
    return path
