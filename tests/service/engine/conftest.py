"""What the tests of the engine share."""

from collections.abc import Iterator

import pytest

from service.engine import terms


@pytest.fixture(autouse=True)
def _terms_of_nobody() -> Iterator[None]:
    """Terms that one test agrees on are those of no other, whichever comes next."""
    before = terms._terms.set(terms.Terms())
    yield
    terms._terms.reset(before)
