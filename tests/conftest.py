"""What several folders of tests share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the artifacts `letters` and `noise`; nobody may change it."""
    from tests.artifacts import write_letters, write_noise  # here, because torch is slow to import

    folder = tmp_path_factory.mktemp("artifacts")
    write_letters(folder)
    write_noise(folder)
    return folder
