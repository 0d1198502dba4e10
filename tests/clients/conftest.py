"""What the client and the command are tried against."""

from collections.abc import Iterator

import pytest

from tests.clients.scripted import Scripted, scripted


@pytest.fixture
def service() -> Iterator[Scripted]:
    """A service by script."""
    with scripted() as started:
        yield started
