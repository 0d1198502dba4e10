"""A run of the tiny recipe and its artifact, made once."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from export.parity import operators
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


@pytest.fixture(scope="session")
def artifact(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact of that run; nobody may change it."""
    from export.convert import convert

    folder = tmp_path_factory.mktemp("artifacts") / "tiny"
    convert(run, folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _operators_compared_once() -> Iterator[None]:
    """A parity report compares onnxruntime's operators too, which no artifact changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "operators", cache(operators.operators))
        yield
