"""What the page is answered on a device before any model computes."""

from typing import Any

import pytest

from tests.site.conftest import Ask


@pytest.mark.parametrize(
    ("path", "param"),
    [
        ("POST /v1/completions", "model"), ("POST /v1/handwriting", "model"),
        ("GET /v1/models/another", "model"), ("POST /v1/no", None),
    ],
)  # fmt: skip
def test_a_refusal_names_its_field_as_the_services_does(
    ask: Ask, path: str, param: str | None
) -> None:
    method, path = path.split()
    asked = {"method": method, "path": path, "body": {"model": "another"}}
    (answer,) = ask("routed", [asked])
    error = answer["body"]["error"]
    assert answer["status"] == 404
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


def test_news_of_a_model_comes_when_there_is_some(ask: Ask) -> None:
    """Nobody has to ask again and again; the list says how it is now."""
    paths = ("/v1/models/it", "/v1/models")
    one, every = ask("routed", [{"method": "GET", "path": path} for path in paths])
    assert one == {"status": 200, "body": {"id": "it", "proved": True}}
    assert every["body"]["data"] == [{"id": "it", "proved": False}]


def _refused(status: int, message: str, param: str | None = None) -> dict[str, Any]:
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "param": param, "code": None}
    return {"status": status, "body": {"error": error}}


def test_a_request_is_answered_by_its_method_and_its_path(ask: Ask) -> None:
    preview = {"model": "a pen", "preview": "models/previews/a pen/ada.svg"}
    style = {"id": "ada", "description": "clear"} | preview
    lost = style | {"model": "lost", "preview": "models/previews/lost/ada.svg"}
    write = {"model": "a pen", "prompt": "", "max_tokens": 0}
    styles = {"object": "list", "data": [style, lost]}
    choice = {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}
    usage = {"prompt_tokens": 2, "completion_tokens": 0}
    about = {"model": "a pen", "seed": 3, "system_fingerprint": "any"}
    made_up = {"model": "a pen", "text": "ho", "seed": 3, "style": "made-up", "format": "json"}
    stop = "this page has no stop; the service does"
    unknown = _refused(404, "model is me; this page has: a pen, lost", "model")
    answers: list[tuple[str, dict[str, Any] | None, Any]] = [
        ("GET /v1/models/a%20pen", None, {"status": 200, "body": {"id": "a pen"}}),
        ("GET /v1/styles", None, {"status": 200, "body": styles}),
        ("POST /v1/completions", write | {"stream": True}, {"status": 200, "events": 2}),
        (
            "POST /v1/completions",
            write | {"prompt": "ho", "seed": 3},
            {"status": 200, "body": about | {"choices": [choice], "usage": usage}},
        ),
        ("POST /v1/handwriting", made_up | {"stream": True}, {"status": 200, "events": 3}),
        ("POST /v1/completions", write | {"stop": "!"}, _refused(400, stop, "stop")),
        ("POST /v1/completions", {"model": "lost"}, _refused(500, "no memory")),
        ("POST /v1/completions", {"model": "lost", "stop": True}, "AbortError"),
        ("GET /v1/completions", None, _refused(404, "this page has no GET /v1/completions")),
        ("POST /v1/handwriting", {"model": "me"}, unknown),
        ("POST /v1/models/me/attest", None, unknown),
    ]  # fmt: skip
    asked = [path.split() for path, _, _ in answers]
    cases = [
        {"method": m, "path": p, "body": b}
        for (m, p), (_, b, _) in zip(asked, answers, strict=True)
    ]
    assert ask("routes", cases) == [told for _, _, told in answers]
