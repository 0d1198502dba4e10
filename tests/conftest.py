"""What several folders of tests share."""

import gc
import os
import resource
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

Write = Callable[..., Path]

# jsonschema compiles every grammar of IRIs, in more than a second, if it can. It does without where
# it cannot, and nothing here has an IRI.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# What is imported for the first time is compiled as well. Workers that import all in the same order
# do that at the same time, each for itself, so the second one begins with what comes last.
if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
    for module in "schemathesis", "scipy.stats", "matplotlib.pyplot", "openai", "aiohttp":
        import_module(module)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what takes long, unless it is asked for."""
    if not os.environ.get("EVENKEEL_LONG"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="it takes long: make test-all"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say each reason for skipping once, not once a test."""
    reports = terminalreporter.stats.get("skipped", [])
    for reason, tests in Counter(report.longrepr[2] for report in reports).items():
        terminalreporter.write_line(f"{tests} tests: {reason}")


def heard() -> list[object]:
    """What comes of the signals that end a process."""
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


HEARD = pytest.StashKey[bool]()  # whether that is the same after all imports of the tests


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is imported and collected stays to the end, so no garbage is looked for in it."""
    gc.disable()
    before = heard()
    try:
        return (yield)
    finally:
        session.config.stash[HEARD] = heard() == before
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _operators_once() -> Iterator[None]:
    """PyTorch's exporter makes its table of ONNX operators for every graph: a fifth of its time."""
    if "export.graph" not in sys.modules:  # it is slow to import and most tests do without
        yield
        return
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        once = staticmethod(cache(ONNXRegistry.from_torchlib))
        patch.setattr(ONNXRegistry, "from_torchlib", once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """httpx reads the certificates of all authorities for every request that has no client of its
    own, also where it asks without TLS: 40 ms of a core, while others wait for a service to start.
    No test asks anybody who has one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("no-authorities")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_proxies() -> Iterator[None]:
    """Tests ask this machine alone, which no proxy of the environment is to be asked for."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            patch.delenv(name)
        yield


@contextmanager
def _one_thread() -> Iterator[None]:
    """Models this small only lose by waiting for a second thread."""
    import torch  # here, because it is slow as well

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """An artifact of `tests.artifacts` by its name, `of` others: made by whichever worker asks
    first."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def made(name: str, *of: Path, timeout_s: float = -1) -> Path:
        with FileLock(root / f"{name}.lock", timeout_s):
            folder = root / "made" / name
            if not folder.exists():
                (root / f"making-{name}").mkdir()
                with _one_thread():
                    from tests import artifacts

                    write: Write = getattr(artifacts, f"write_{name}")
                    folder.parent.mkdir(exist_ok=True)
                    write(root / f"making-{name}", *of).rename(folder)
        return folder

    return made


@pytest.fixture(scope="session")
def folder_of(
    made_once: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """A folder with copies of several. What another worker is making is waited for at the end."""

    def folder(*names: str) -> Path:
        for name in names:
            with suppress(Timeout):
                made_once(name, timeout_s=0)
        path = tmp_path_factory.mktemp("-".join(names))
        for name in names:
            shutil.copytree(made_once(name), path / name)
        return path

    return folder


@pytest.fixture(scope="session")
def in_both(made_once: Callable[..., Path]) -> Callable[[str, Path], Path]:
    """Copies the artifact of this name into a folder, and the same in eight bits beside it, which
    takes seconds to make."""

    def copied(name: str, folder: Path) -> Path:
        exact = made_once(name)
        shutil.copytree(exact, folder / name)
        shutil.copytree(made_once(f"{name}_int8", exact), folder / f"{name}-int8")
        return folder

    return copied


@pytest.fixture(scope="session")
def corpus(made_once: Callable[..., Path]) -> Path:
    """A text, the only file of its folder."""
    return made_once("trained") / "data" / "sheep.txt"


@pytest.fixture(scope="session")
def run(made_once: Callable[..., Path]) -> Path:
    """A finished run of the tiny recipe on it; nobody may change it."""
    return made_once("trained") / "run" / "tiny"


@pytest.fixture(scope="session")
def artifacts(folder_of: Callable[..., Path]) -> Path:
    """A folder with the artifacts `letters` and `noise`; nobody may change it."""
    return folder_of("letters", "noise")


@pytest.fixture(scope="session")
def inks(folder_of: Callable[..., Path]) -> Path:
    """A folder with the artifacts `letters`, `scrawl` and `squint`; nobody may change it."""
    return folder_of("letters", "scrawl", "squint")


@pytest.fixture
def full_disk() -> Callable[[int], AbstractContextManager[None]]:
    """A disk on which no file can grow beyond so many bytes."""

    @contextmanager
    def full(most_bytes: int) -> Iterator[None]:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return full
