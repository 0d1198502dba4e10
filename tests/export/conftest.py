"""The tiny text, its run and its artifact, made once."""

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
def tiny(made_once: Callable[[str], Path]) -> Path:
    """A text, a run on it and its artifact; nobody may change any of it."""
    return made_once("tiny")


@pytest.fixture(scope="session")
def corpus(tiny: Path) -> Path:
    """The text, the only file of its folder."""
    return tiny / "data" / "sheep.txt"


@pytest.fixture(scope="session")
def run(tiny: Path) -> Path:
    """A finished run of the tiny recipe."""
    return tiny / "run" / "tiny"


@pytest.fixture(scope="session")
def artifact(tiny: Path) -> Path:
    """The artifact of that run."""
    return tiny / "artifact" / "tiny"


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
