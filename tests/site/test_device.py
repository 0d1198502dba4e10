"""What the page hears of a worker that cannot compute, and what a worker is not asked."""

from typing import Any

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


def test_what_a_worker_says_is_heard_by_who_asked(ask: Ask) -> None:
    """A refusal has its status; who stops an answer or closes a session has the worker stop."""
    (found,) = ask("heard", [{}])
    assert found["status"] == 404
    assert found["ends"] == ['data: {"of":2}\n\ndata: [DONE]\n\n', "AbortError"]
    assert found["stops"] == [4, 3]


def test_a_worker_fetches_what_is_wanted_and_forgets_what_is_of_another_build(ask: Ask) -> None:
    def model(name: str, kind: str) -> dict[str, Any]:
        file = {"path": f"{name}.gz", "bytes": 1, "sha256": "0" * 64}
        return {"manifest": {"name": name, "kind": kind}, "files": {name: file}}

    runtime = {"path": "runtime.gz", "bytes": 1, "sha256": "0" * 64}
    models = [model("pen", "handwriting"), model("text", "language")]
    kept = [f"{name}.gz?{'0' * 16}" for name in ("runtime", "pen", "text", "old")]
    index = {"runtime": runtime, "models": models}
    (found,) = ask("worked", [{"index": index, "kept": kept, "wants": "language"}])
    assert sorted(found["fetched"]) == ["runtime.gz?" + "0" * 16, "text.gz?" + "0" * 16]
    assert found["left"] == kept[:-1]
    assert found["troubles"] == ["text"]
    assert found["ended"] == [8]  # the other session was stopped before it heard a word
