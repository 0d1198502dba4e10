"""A service whose reader is `squint`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.conftest import Start
from tests.service.reader.lines import ReaderService
from tests.service.serving import settings


@pytest.fixture(scope="package", params=["scan", "slots"])
def reader(request: pytest.FixtureRequest, start: Start, inks: Path) -> Iterator[ReaderService]:
    """On either runner."""
    with start(settings(inks, runner=request.param)) as started:
        yield ReaderService(started.app, started.client)
