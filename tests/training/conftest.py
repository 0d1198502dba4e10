"""Invented ink, made once."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from training.ink.corpus import PenCorpus, read_pens
from training.ink.line import Tally

# Two threads that wait for each other at every tiny operation are slower than one.
torch.set_num_threads(1)


@pytest.fixture
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run is drawn, which takes as long as twenty updates of a tiny one."""
    monkeypatch.setattr("training.run._plot", lambda *_: None)


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
