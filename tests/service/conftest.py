"""Services that several files talk to; each is started once.

With `EVENKEEL_THROUGH=ray` they are behind Ray Serve, and the tests of any other are left out.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from pathlib import Path

import pytest

from service import logs
from service.__main__ import main
from service.artifact import Artifact, load_artifact
from service.graph import read_graph
from service.settings import Settings
from tests.service.altered import copy_of
from tests.service.serving import Service, listening, running, settings
from tests.service.writing import InkService

Start = Callable[[Settings], AbstractContextManager[Service]]

_THROUGH_RAY = os.environ.get("EVENKEEL_THROUGH") == "ray"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what Ray cannot be asked."""
    if _THROUGH_RAY:
        others = [item for item in items if not _may_be_elsewhere(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def _may_be_elsewhere(item: pytest.Item) -> bool:
    shared = "start" in getattr(item, "fixturenames", ())
    return shared and item.get_closest_marker("in_process") is None


@pytest.fixture(scope="session", autouse=True)
def _graphs_once() -> Iterator[None]:
    """Every service reads the graphs of the same few artifacts: a fifth of its start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.artifact.read_graph", lru_cache(maxsize=32)(read_graph))
        yield


@pytest.fixture(scope="session")
def letters(folder_of: Callable[..., Path]) -> Path:
    """A folder with the artifact `letters` alone, for the many services that need no other and
    start in half of the time; nobody may change it."""
    return folder_of("letters")


@pytest.fixture
def collect_own() -> Iterator[Callable[[], int]]:
    """Frees what the test itself has left. In all of a process it takes a third of a second to
    look, and nothing of the test is older than the youngest."""
    gc.disable()
    try:
        yield partial(gc.collect, 0)
    finally:
        gc.enable()


@pytest.fixture(scope="session")
def start() -> Start:
    """Starts a service that no test may change: in this process, or behind Ray Serve."""
    if not _THROUGH_RAY:
        return running
    from tests.service.through_ray import through_ray  # which wants what few tests do

    return through_ray


@pytest.fixture(scope="session", params=["scan", "slots"])
def service(request: pytest.FixtureRequest, start: Start, artifacts: Path) -> Iterator[Service]:
    """A service on each runner, where many may wait for long; tests of facts that hold on both."""
    with start(settings(artifacts, runner=request.param, slots=8, max_wait_s=60)) as started:
        yield started


@pytest.fixture(scope="session")
def scan(start: Start, artifacts: Path) -> Iterator[Service]:
    """A service on the scan runner; tests of what no runner can change."""
    with start(settings(artifacts, runner="scan")) as started:
        yield started


@pytest.fixture(scope="session", params=["scan", "slots"])
def pen(request: pytest.FixtureRequest, start: Start, inks: Path) -> Iterator[InkService]:
    """A service that writes ink on each runner; tests of facts that hold on both."""
    with start(settings(inks, runner=request.param, slots=8, max_wait_s=60)) as started:
        yield InkService(started.app, started.client)


@pytest.fixture(scope="session")
def ink(start: Start, inks: Path) -> Iterator[InkService]:
    """A service that writes ink on the scan runner; tests of what no runner can change."""
    with start(settings(inks, runner="scan")) as started:
        yield InkService(started.app, started.client)


class Command:
    """`python -m service` in this process, for what ends before anything is served."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Exit status and what was put out."""
        self._monkeypatch.setattr(sys, "argv", ["service", *arguments])
        # Of this process it is pytest's.
        self._monkeypatch.setattr(logs, "set_up", lambda _: None)
        for name, value in environment.items():
            self._monkeypatch.setenv(name, value)
        status = main()
        return status, *self._capsys.readouterr()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command that serves."""
    return Command(monkeypatch, capsys)


@pytest.fixture(scope="module")
def url(letters: Path) -> Iterator[str]:
    """Where a service listens that a file of tests has to itself."""
    with listening(settings(letters)) as (url, _):
        yield url


@pytest.fixture(scope="module", params=["letters", "noise"])
def artifact(request: pytest.FixtureRequest, artifacts: Path) -> Artifact:
    """Either of the two that write text."""
    return load_artifact(artifacts / request.param)


@pytest.fixture
def copy(artifacts: Path, tmp_path: Path) -> Path:
    """The artifact `letters`, to be changed."""
    return copy_of(artifacts / "letters", tmp_path)


@pytest.fixture
def folder(artifacts: Path, tmp_path: Path) -> Path:
    """Artifacts that may be changed: `letters` alone."""
    (tmp_path / "served").mkdir()
    copy_of(artifacts / "letters", tmp_path / "served")
    return tmp_path / "served"
