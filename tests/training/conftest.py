"""Invented ink, made once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from tests.training.tiny import undrawn
from training.ink.corpus import PenCorpus, read_pens
from training.ink.line import Tally

# Two threads that wait for each other at every tiny operation are slower than one.
torch.set_num_threads(1)


@pytest.fixture
def _undrawn() -> Iterator[None]:
    """For a whole file or a test that looks at no picture."""
    with undrawn():
        yield


@pytest.fixture(scope="session")
def pens(made_once: Callable[[str], Path]) -> PenCorpus:
    """Lines of invented ink; nobody may change them."""
    return read_pens(made_once("pens") / "invented.npz", Tally())


@pytest.fixture(scope="session")
def saved_pens(pens: PenCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first of them as a file."""
    path = tmp_path_factory.mktemp("pens") / "few.npz"
    PenCorpus("few", pens.inks[:60]).save(path)
    return path
