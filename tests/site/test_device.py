"""What the page hears of a worker that cannot compute, and what a worker is not asked."""

from collections.abc import Callable
from pathlib import Path
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
    (found,) = ask("failing", [{"says": says}])
    assert found == {"status": 503, "message": reason, "told": [reason]}


def test_a_page_whose_scripts_cannot_be_loaded_says_so(ask: Ask) -> None:
    """It asked for the models for ever; of what fails later it knows better itself."""
    page = {"address": "https://host.example/site/?seed=3#text"}
    page |= {"from": "https://host.example/site/static/page.js"}
    disk = {"address": "file:///site/index.html", "from": "file:///site/static/page.js"}
    other = {"from": "extension://other/begin.js"}
    cases: list[dict[str, Any]] = [
        {"of": "script"}, {"of": None}, {"of": "img"}, {"of": "script", "said": "Ready"},
        {"of": "script"} | disk, {"of": "script"} | other, {"of": None} | other,
    ]  # fmt: skip
    lost, failed, picture, later, file, *others = ask("unstarted", [page | case for case in cases])
    begins = "This page cannot be started: "
    lacks = "one of its scripts cannot be loaded, or is of another version. Load it again."
    assert lost == failed == [f"{begins}{lacks}", "verdict bad"]
    assert (picture, later) == (["Asking", ""], ["Ready", ""])
    assert others == [["Asking", ""]] * 2  # of what the browser brings along
    needs = "a browser loads no scripts from the files of a disk. A file server has to serve them."
    assert file == [f"{begins}{needs}", "verdict bad"]


def test_a_worker_without_its_list_of_models_says_so(ask: Ask) -> None:
    (found,) = ask("listless", [{}])
    assert found == [{"unready": "The list of models cannot be fetched; load the page again."}]


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
    assert found["events"] == [
        ["closed", "close"], ["open", "open"], ["open", {"step": 1}], ["open", "close"],
    ]  # fmt: skip
    assert found["asks"] == [
        {"id": 5, "path": "/v1/any", "method": "POST", "body": {"a": 1}},
        {"id": 6, "message": {"point": [1, 2, 0]}},
    ]
    assert found["troubles"] == [["", "it"]]  # that there is none any more


def _file(name: str) -> dict[str, Any]:
    return {"path": f"{name}.gz", "bytes": 1, "sha256": "0" * 64}


def _index(**kinds: str) -> dict[str, Any]:
    """A list of models by name, of a file each."""
    models = [
        {"manifest": {"name": name, "kind": kind}, "files": {name: _file(name)}}
        for name, kind in kinds.items()
    ]
    return {"runtime": _file("runtime"), "models": models}


def test_bytes_are_counted_until_nothing_is_being_fetched(ask: Ask) -> None:
    """Of two models of a kind one is there, or lost, before the other: its bytes still are."""
    index = _index(one="language", other="language")
    (found,) = ask("worked", [{"index": index, "kept": [], "wants": "language"}])
    assert found["totals"] == [1, 2, 3, 3, 0]


def test_a_worker_fetches_what_is_wanted_and_forgets_what_is_of_another_build(ask: Ask) -> None:
    kept = [f"{name}.gz?{'0' * 16}" for name in ("runtime", "pen", "text", "old")]
    index = _index(pen="handwriting", text="language")
    (found,) = ask("worked", [{"index": index, "kept": kept, "wants": "language"}])
    once = ["runtime.gz?" + "0" * 16, "text.gz?" + "0" * 16]
    assert sorted(found["fetched"]) == sorted(2 * once)  # again when it is wanted again
    assert found["left"] == kept[:-1]
    assert found["troubles"] == ["text", "text"]
    assert found["ended"] == [8]  # the other session was stopped before it heard a word


def test_a_worker_answers_of_what_it_has_fetched(ask: Ask, artifact: Callable[[str], Path]) -> None:
    """In messages: a head, what there is to tell, an end."""
    files = {"model.onnx": "a graph", "model.safetensors": "weights"}
    asks = [
        {"method": "GET", "path": "/v1/styles"},
        {"method": "POST", "path": "/v1/completions", "body": {"model": "shakespeare"}},
    ]
    folder = str(artifact("shakespeare"))
    (found,) = ask("served", [{"folder": folder, "files": files, "asks": asks}])
    assert found["ready"]
    assert (found["made"], found["runtime"]) == ([["a graph", "weights"]], "the runtime")
    head, styles, end, refused, error, over = found["answers"]
    assert [head, styles] == [
        {"id": 1, "status": 200, "streams": False},
        {"id": 1, "content": {"object": "list", "data": []}},
    ]
    assert refused == {"id": 2, "status": 503, "streams": False}
    assert error["content"]["error"]["message"].startswith("Not attested here: ")
    assert [end, over] == [{"id": 1, "end": True}, {"id": 2, "end": True}]
    settled, trouble = found["troubles"]
    assert settled == {"trouble": "", "of": "shakespeare"}
    assert trouble["trouble"].startswith("shakespeare: Not attested here: ")
    assert trouble["of"] == "shakespeare"
    *_, most, last = found["fetched"]
    assert most["loaded"] == most["total"] > 0
    assert last == {"loaded": 0, "total": 0}
