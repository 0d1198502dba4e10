"""What several folders of tests share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the artifacts `letters` and `noise`; nobody may change it."""
    import torch  # here, because it is slow to import and most tests do without

    from tests.artifacts import write_letters, write_noise

    folder = tmp_path_factory.mktemp("artifacts")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # models this small only lose by waiting for a second one
    try:
        write_letters(folder)
        write_noise(folder)
    finally:
        torch.set_num_threads(threads)
    return folder
