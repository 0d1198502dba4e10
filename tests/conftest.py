"""What several folders of tests share."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def _one_thread() -> Iterator[None]:
    """Models this small only lose by waiting for a second thread."""
    import torch  # here, because it is slow to import and most tests do without

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the artifacts `letters` and `noise`; nobody may change it."""
    folder = tmp_path_factory.mktemp("artifacts")
    with _one_thread():
        from tests.artifacts import write_letters, write_noise

        write_letters(folder)
        write_noise(folder)
    return folder


@pytest.fixture(scope="session")
def inks(artifacts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the artifacts `letters` and `scrawl`; nobody may change it."""
    folder = tmp_path_factory.mktemp("inks")
    shutil.copytree(artifacts / "letters", folder / "letters")
    with _one_thread():
        from tests.artifacts import write_scrawl

        write_scrawl(folder)
    return folder
