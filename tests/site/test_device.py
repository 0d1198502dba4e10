"""What the page hears of a worker that cannot compute."""

import pytest

from tests.site.conftest import Ask


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ({"unready": "The list cannot be fetched."}, "The list cannot be fetched."),
        (None, "What computes here cannot be started: the worker failed."),
    ],
    ids=["without its list of models", "that was not fetched"],
)
def test_whoever_asks_a_worker_that_cannot_start_hears_why(
    ask: Ask, says: dict[str, str] | None, reason: str
) -> None:
    """As does the line of what is being fetched; it was waited for for ever."""
    (found,) = ask("unstarted", [{"says": says}])
    assert found == {"status": 503, "message": reason, "told": [reason]}
