"""What the client and the command are tried against."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.scripted import Scripted, scripted
from tests.service.serving import listening, settings


@pytest.fixture
def service() -> Iterator[Scripted]:
    """A service by script."""
    with scripted() as started:
        yield started


@pytest.fixture(scope="module")
def url(inks: Path) -> Iterator[str]:
    """Where a service of text and ink listens."""
    with listening(settings(inks)) as (url, _):
        yield url
