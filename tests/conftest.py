"""What several folders of tests share."""

import gc
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

Write = Callable[[Path], Path]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what takes long, unless it is asked for."""
    if not os.environ.get("EVENKEEL_LONG"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="it takes long: make test-all"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end, so no garbage is looked for in it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


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
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """An artifact of `tests.artifacts` by its name: made by whichever worker asks first."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def made(name: str) -> Path:
        with FileLock(root / f"{name}.lock"):
            folder = root / "made" / name
            if not folder.exists():
                (root / f"making-{name}").mkdir()
                with _one_thread():
                    from tests import artifacts

                    write: Write = getattr(artifacts, f"write_{name}")
                    folder.parent.mkdir(exist_ok=True)
                    write(root / f"making-{name}").rename(folder)
        return folder

    return made


@pytest.fixture(scope="session")
def artifacts(made_once: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the artifacts `letters` and `noise`; nobody may change it."""
    folder = tmp_path_factory.mktemp("artifacts")
    for name in ("letters", "noise"):
        shutil.copytree(made_once(name), folder / name)
    return folder


@pytest.fixture(scope="session")
def inks(made_once: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the artifacts `letters`, `scrawl` and `squint`; nobody may change it."""
    folder = tmp_path_factory.mktemp("inks")
    for name in ("letters", "scrawl", "squint"):
        shutil.copytree(made_once(name), folder / name)
    return folder
