"""The artifact of the tiny run, made once."""

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from export.parity import operators

# Two threads that wait for each other at every tiny operation are slower than one.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def artifact(made_once: Callable[..., Path], run: Path) -> Path:
    """The artifact of a run of the tiny recipe; nobody may change it."""
    return made_once("tiny", run)


@pytest.fixture(scope="session", autouse=True)
def _operators_compared_once() -> Iterator[None]:
    """A parity report compares onnxruntime's operators too, which no artifact changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "operators", cache(operators.operators))
        yield


@pytest.fixture
def folder(artifact: Path, tmp_path: Path) -> Path:
    """The artifact once more, to be changed."""
    return Path(shutil.copytree(artifact, tmp_path / "tiny"))
