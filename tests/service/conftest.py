"""Services that several files talk to; each is started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.serving import Service, running, settings
from tests.service.writing import InkService


@pytest.fixture(scope="session", params=["scan", "slots"])
def service(request: pytest.FixtureRequest, artifacts: Path) -> Iterator[Service]:
    """A service on each runner; tests of facts that hold on both."""
    with running(settings(artifacts, runner=request.param, slots=24)) as started:
        yield started


@pytest.fixture(scope="session")
def scan(artifacts: Path) -> Iterator[Service]:
    """A service on the scan runner; tests of what no runner can change."""
    with running(settings(artifacts, runner="scan")) as started:
        yield started


@pytest.fixture(scope="session", params=["scan", "slots"])
def pen(request: pytest.FixtureRequest, inks: Path) -> Iterator[InkService]:
    """A service that writes ink on each runner; tests of facts that hold on both."""
    with running(settings(inks, runner=request.param, slots=8)) as started:
        yield InkService(started.app, started.client)


@pytest.fixture(scope="session")
def ink(inks: Path) -> Iterator[InkService]:
    """A service that writes ink on the scan runner; tests of what no runner can change."""
    with running(settings(inks, runner="scan")) as started:
        yield InkService(started.app, started.client)
