"""What answers tell of errors: beside their bodies, and of what was given."""

import asyncio
import gc
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from service.errors import (
    DeadlineExceeded,
    HeadTooLarge,
    InvalidRequest,
    NotReady,
    Overloaded,
    RequestTimeout,
    ServiceError,
    TooManyRequests,
    Unauthorized,
    shown,
)
from service.http.errors import _http_error, answer_to, broken_rule
from service.http.fields import RequestBody
from service.http.record import Recorder
from service.ink.schemas import HandwritingRequest
from service.metrics import Metrics
from service.text.schemas import CompletionRequest
from tests.service.serving import Service

_API = Path(__file__).parents[3] / "docs" / "api.md"


@pytest.mark.parametrize(
    ("error", "headers"),
    [
        (RequestTimeout("late"), {"connection": "close"}),  # more of the body may be on its way
        (Unauthorized("who?"), {"www-authenticate": 'Bearer realm="evenkeel"'}),
        (NotReady("soon"), {"retry-after": str(NotReady.retry_after_s)}),
        (InvalidRequest("no"), {}),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_has_the_headers_of_its_kind(error: Any, headers: dict[str, str]) -> None:
    told = answer_to(error).headers
    names = ("connection", "www-authenticate", "retry-after")
    assert {name: told[name] for name in names if name in told} == headers


@pytest.mark.parametrize("kind", [InvalidRequest, HeadTooLarge, Overloaded, DeadlineExceeded])
def test_a_refusal_by_either_side_is_counted_by_its_status(kind: type[ServiceError]) -> None:
    metrics, app = Metrics(), FastAPI()
    Recorder(app, metrics).refused(kind("no"), ("127.0.0.1", 5))
    labels = {"status": str(kind.status)}
    assert metrics.registry.get_sample_value("evenkeel_requests_rejected_total", labels) == 1


@pytest.mark.parametrize(("length", "shown"), [(78, 78), (79, 76)])
def test_what_was_given_is_told_whole_up_to_80_characters(length: int, shown: int) -> None:
    """Its quotes are two of them."""
    rule = {"type": "int_type", "loc": ("n",), "input": "x" * length, "msg": "no"}
    told = broken_rule([rule], "it").message
    assert told.count("x") == shown
    assert ("..." in told) == (shown < length)


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/vnd.a+json"]
)
def test_what_is_said_to_be_json_and_is_not_is_told_where(scan: Service, kind: str) -> None:
    headers = {"content-type": kind}
    answer = scan.client.post("/v1/completions", content='{"model": ', headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].endswith(" at character 10")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"x": 1}, "x"),
        ({"page": {"width": 100, "height": 100, "X": 1}}, "page.X"),
        ({"style": {"strokes": [[[0, 0]]], "text": "a", "str": 1}}, "style.str"),
    ],
)
def test_an_unknown_field_is_named_without_the_branches_of_a_union(body: Any, named: str) -> None:
    told = _refused({"text": "a"} | body)
    assert told.message == f"unknown field: {named}"
    assert told.param == named.partition(".")[0]


def test_of_an_unknown_field_no_more_is_told_than_a_name_has() -> None:
    """Whoever sends a megabyte as one gets none back."""
    told = _refused({"text": "a", "x" * 2000: 1})
    assert told.message == f"unknown field: {'x' * 80}"
    assert told.param == "x" * 80


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"page": "a3"},
            "page is 'a3'; this service only takes 'a4', 'a5' or 'letter', or an object",
        ),
        ({"style": 5}, "style is 5: Input should be a valid string, or an object"),
        ({"page": {"width": 43}}, "page.height is missing"),
        (
            {"paper": "lined"},
            "paper is 'lined'; this service only takes 'plain', 'ruled' or 'squared'",
        ),
    ],
)
def test_a_rule_says_where_an_object_would_do_as_well(body: Any, message: str) -> None:
    assert _refused({"text": "a"} | body).message == message


def test_where_nothing_but_an_object_would_do_it_is_told_once() -> None:
    told = _refused({"stream_options": 5}, CompletionRequest).message
    assert told.startswith("stream_options is 5: Input should be a valid dictionary")
    assert not told.endswith("or an object")


def _refused(body: dict[str, Any], kind: type[RequestBody] = HandwritingRequest) -> InvalidRequest:
    with pytest.raises(ValidationError) as raised:
        kind.model_validate(body)
    return broken_rule(raised.value.errors(), "it")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"page": "a4", "width": 900}, "page"),
        ({"return_state": True, "format": "svg"}, "return_state"),
        ({"best_by": "word"}, "best_by"),
        ({"margin": 100}, None),
    ],
)
def test_a_rule_about_several_fields_names_the_one_it_begins_with(
    body: Any, named: str | None
) -> None:
    assert _refused({"text": "a"} | body).param == named


def test_every_error_is_told_with_its_status_and_code() -> None:
    table = _API.read_text().partition("An unknown field")[0]
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", table, re.M)
    told = {name: int(status) for status, named in rows for name in named.split(", ")}
    kinds = ServiceError.__subclasses__()
    assert told == {f"`{kind.code}`" if kind.code else "null": kind.status for kind in kinds}


@pytest.mark.parametrize(
    ("name", "told"), [("n" * 40, "n" * 40), ("n" * 41, "n" * 37 + "..."), ("a'b", "a'b")]
)
def test_a_name_is_told_with_no_more_than_40_characters(name: str, told: str) -> None:
    assert shown(name) == repr(told)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (TooManyRequests, "rate_limit_error"),
        (Unauthorized, "invalid_request_error"),
        (InvalidRequest, "invalid_request_error"),
        (Overloaded, "server_error"),
    ],
)
def test_an_error_is_of_the_type_that_clients_of_openai_know(
    kind: type[ServiceError], told: str
) -> None:
    assert kind("no").body()["error"]["type"] == told


_VALUES: list[Any] = [
    "", "a", "a" * 78, "a" * 79, "a" * 500, "\n" * 90, [], {}, [[]], [1, 2.5, None, True],
    {"a": [1, {"b": "c"}]},
    [*range(500)], {str(i): [i] for i in range(90)}, [["x" * 300]], 10**200,
]  # fmt: skip


@pytest.mark.parametrize("value", _VALUES, ids=lambda value: str(value)[:12])
def test_a_wrong_value_is_told_as_python_writes_it_as_far_as_there_is_room(value: Any) -> None:
    whole = repr(value)
    expected = whole if len(whole) <= 80 else whole[:77] + "..."
    told = broken_rule([{"type": "any", "loc": ("f",), "input": value, "msg": "no"}], "it").message
    assert told == f"f is {expected}: no"


def test_of_a_megabyte_that_is_wrong_the_rest_is_not_looked_at() -> None:
    class Unseen:
        def __repr__(self) -> str:
            raise AssertionError("it was looked at")

    value = ["x" * 200, Unseen()]
    told = broken_rule([{"type": "any", "loc": ("f",), "input": value, "msg": "no"}], "it").message
    assert told.endswith("...: no")
    assert len(told) < 100


@pytest.mark.in_process
@pytest.mark.parametrize(
    "body", [b"{", b"\xff", b"[" * 100_000], ids=["cut", "not UTF-8", "too deep"]
)
def test_a_body_that_is_no_json_is_not_kept_when_it_has_been_told(
    scan: Service, body: bytes, collect_own: Callable[[], int]
) -> None:
    """A megabyte each, of whoever asks a thousand times at once: a full collection, which would
    find what keeps itself, is put off while requests wait."""
    collect_own()
    answer = scan.client.post(
        "/v1/completions", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    kinds = (RequestValidationError, HTTPException)
    assert [each for each in gc.get_objects(generation=0) if type(each) in kinds] == []


@pytest.mark.parametrize(
    ("status", "code"), [(413, "body_too_large"), (408, "request_timeout"), (503, "not_ready")]
)
def test_what_ends_a_body_on_its_way_is_an_error_of_its_kind(status: int, code: str) -> None:
    """Raised as the framework's own, or it would make a 400 of any."""
    request: Any = None
    answer = asyncio.run(_http_error(request, HTTPException(status, "so it is")))
    error = json.loads(bytes(answer.body))["error"]
    assert (answer.status_code, error["code"], error["message"]) == (status, code, "so it is")
    assert ("retry-after" in answer.headers) == (status == 503)


def test_of_two_rules_that_are_broken_within_a_field_the_one_whose_type_fits_is_told() -> None:
    given = {"text": "a", "style": {"strokes": [[["x", 0]]], "text": ""}}
    with pytest.raises(ValidationError) as broken:
        HandwritingRequest.model_validate(given)
    told = broken_rule(broken.value.errors(), "the request body")
    assert told.message.startswith("style.text is ''")
