"""What the page hears of a worker that cannot compute, and what a worker is not asked."""

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


def test_a_request_of_a_task_that_was_stopped_is_not_made(ask: Ask) -> None:
    """As `fetch` has it; the model wrote on, and a second stop stopped nothing."""
    (found,) = ask("stopped", [{}])
    assert found == {"came": "AbortError", "asked": []}
