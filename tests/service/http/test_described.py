"""Statuses, content types and headers that a made-up request never meets are in `/openapi.json` as
they are answered."""

import math
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from contract.golden import Verdict
from service.app import create_app
from service.errors import (
    BodyTooLarge,
    CodedBody,
    EngineFault,
    RequestTimeout,
    ServiceError,
    Unauthorized,
)
from service.http.described import Answer, fails
from service.http.guard import PROBES
from service.ink.described import LineEnded, PageBegun, PageEnded, Points
from service.ink.schemas import Format
from tests.service.serving import ELSEWHERE, settings
from tests.service.writing import InkService, online

_STROKES = {"strokes": [[[i, i % 5] for i in range(40)]], "text": "ab"}
_BODIES: dict[str, dict[str, Any]] = {
    "/v1/completions": {"model": "letters", "max_tokens": 2, "seed": 1},
    "/v1/handwriting": {"text": "a", "seed": 1},
    "/v1/styles": _STROKES,
    "/v1/read": {"strokes": _STROKES["strokes"]},
    "/tokenize": {"prompt": "a"},
    "/detokenize": {"tokens": [65]},
    "/v1/models/{name}/attest": {},
}
_BEST = {"best_of": 2, "best_by": "word"}
_FORMATS = {
    "svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf",
    "inkml": "application/inkml+xml", "json": "application/json",
    "hpgl": "application/vnd.hp-hpgl", "gcode": "text/x.gcode", "plotter-svg": "image/svg+xml",
}  # fmt: skip


def _operations(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Method and path of all that anybody may do; test_document.py has the rest."""
    paths = {p: m for p, m in document["paths"].items() if not p.endswith("load")}
    return [(method, path) for path, methods in paths.items() for method in methods]


def _ask(client: Any, method: str, path: str, **changes: Any) -> Any:
    place = path.format(name="letters", style="upright")
    body = _BODIES[path] | changes if method == "post" else None
    return client.request(method.upper(), place, json=body)


def _check(document: dict[str, Any], method: str, path: str, answer: Any) -> None:
    """The answer is one that the document tells of."""
    responses = document["paths"][path][method]["responses"]
    assert str(answer.status_code) in responses, (method, path, answer.status_code)
    told = responses[str(answer.status_code)]
    assert answer.headers["content-type"].partition(";")[0] in told["content"]
    for name, header in told.get("headers", {}).items():
        assert name in answer.headers or not header.get("required")
    if method != "head" and answer.headers["content-type"] == "application/json":
        schema = told["content"]["application/json"].get("schema", {})
        Draft202012Validator(schema | {"components": document["components"]}).validate(
            answer.json()
        )
    ours = ("x-evenkeel", "x-request-id", "x-accel-", "retry-")
    extra = {name for name in answer.headers if name.startswith(ours)}
    assert extra <= {name.lower() for name in told.get("headers", {})}


@pytest.fixture(scope="module")
def document(ink: InkService) -> dict[str, Any]:
    return dict(ink.client.get("/openapi.json").json())


def test_success_is_told_of_every_route(ink: InkService, document: dict[str, Any]) -> None:
    for method, path in _operations(document):
        answer = _ask(ink.client, method, path)
        assert answer.status_code == 200, answer.text
        _check(document, method, path, answer)


@pytest.mark.parametrize(
    ("path", "option", "kind"),
    [
        ("/v1/completions", {"stream": True}, "text/event-stream"),
        ("/v1/handwriting", {"stream": True}, "text/event-stream"),
        ("/v1/handwriting", {"format": "json", "return_state": True}, "application/json"),
        ("/v1/handwriting", {"format": "json"} | _BEST, "application/json"),
        *(("/v1/handwriting", {"format": name}, kind) for name, kind in _FORMATS.items()),
    ],
)
def test_every_kind_of_content_is_told(
    ink: InkService, document: dict[str, Any], path: str, option: dict[str, Any], kind: str
) -> None:
    answer = _ask(ink.client, "post", path, **option)
    assert answer.headers["content-type"].partition(";")[0] == kind
    held_back = answer.headers.get("x-accel-buffering") != "no"  # by nginx, until there is more
    assert held_back == ("stream" not in option)
    _check(document, "post", path, answer)


def test_every_event_of_a_page_is_told(ink: InkService) -> None:
    body = {"text": "a", "seed": 1, "stream": True, "format": "svg", "return_state": True} | _BEST
    lines = ink.client.post("/v1/handwriting", json=body).text.splitlines()
    *events, done = (line.removeprefix("data: ") for line in lines if line.startswith("data: "))
    told: TypeAdapter[Any] = TypeAdapter(PageBegun | Points | LineEnded | PageEnded)
    last = [told.validate_json(event) for event in events][-1]
    assert done == "[DONE]"
    assert "<svg" in last.drawing
    assert last.state


@pytest.mark.parametrize(
    ("path", "name", "asked"),
    [
        ("/v1/completions", "letters", {}),
        ("/v1/handwriting", "scrawl", {"format": "json"}),
        ("/v1/read", "squint", {"line_height": 64}),
    ],
)
def test_what_goes_on_from_another_runtime_is_told(
    ink: InkService, document: dict[str, Any], path: str, name: str, asked: dict[str, Any]
) -> None:
    answer = _ask(ink.client, "post", path, **asked, return_state=True).json()
    state = answer.get("state") or answer["choices"][0]["state"]
    asked |= {"state": ink.moved(name, state), "state_policy": "close"}
    asked.pop("line_height", None)  # which is that of the state
    answer = _ask(ink.client, "post", path, **asked)
    assert answer.json().get("state_runtime") == ELSEWHERE
    _check(document, "post", path, answer)


def test_a_byte_that_a_session_drew_is_told_without_its_probability(
    ink: InkService, document: dict[str, Any]
) -> None:
    with online(ink) as session:
        for said in ({"model": "letters", "seed": 4}, {"write": 3}):
            session.ask(**said)
        state = session.ask(state=True)["state"]
    answer = _ask(ink.client, "post", "/v1/completions", state=state, logprobs=1)
    probabilities = answer.json()["choices"][0]["logprobs"]
    assert (probabilities["token_logprobs"][0], probabilities["top_logprobs"][0]) == (None, None)
    _check(document, "post", "/v1/completions", answer)


def test_each_format_of_ink_is_among_them() -> None:
    assert _FORMATS.keys() == set(get_args(Format))


def test_every_refusal_is_told(ink: InkService, document: dict[str, Any]) -> None:
    state = _ask(ink.client, "post", "/v1/completions", return_state=True).json()
    foreign = state["choices"][0]["state"]
    mine = _ask(ink.client, "post", "/v1/handwriting", format="json", return_state=True).json()
    for path, change, status in (
        ("/v1/completions", {"state": mine["state"]}, 409),
        ("/v1/handwriting", {"state": foreign}, 409),
        ("/v1/handwriting", {"style": foreign}, 409),
        ("/v1/completions", {"model": "nobody"}, 404),
        ("/v1/handwriting", {"model": "nobody"}, 404),
        ("/v1/styles", {"model": "nobody"}, 404),
        *((path, {"surprise": 1}, 400) for path in _BODIES if "{" not in path),
        *((path, {"surprise": "x" * 2**20}, 413) for path in _BODIES),
    ):
        answer = _ask(ink.client, "post", path, **change)
        assert answer.status_code == status, (path, answer.text)
        _check(document, "post", path, answer)


def test_a_body_in_a_coding_is_told_of_every_route_that_has_one(
    ink: InkService, document: dict[str, Any]
) -> None:
    for path in (path for path in _BODIES if "{" not in path):
        coded = {"content-encoding": "gzip"}
        answer = ink.client.post(path, json={}, headers=coded)
        assert answer.status_code == 415
        _check(document, "post", path, answer)


def test_routes_with_names_tell_of_names_that_nobody_has(
    ink: InkService, document: dict[str, Any]
) -> None:
    for method, path in _operations(document):
        if "{" in path:
            answer = ink.client.request(method.upper(), path.format(name="nobody", style="nobody"))
            assert answer.status_code == 404
            _check(document, method, path, answer)


def test_a_model_that_is_not_ready_is_told_of_every_route_that_needs_one(
    inks: Path, document: dict[str, Any]
) -> None:
    client = TestClient(create_app(settings(inks)))  # its models never start
    unready = set()
    for method, path in _operations(document):
        answer = _ask(client, method, path)
        _check(document, method, path, answer)
        if answer.status_code == 503:
            unready.add(path)
    full = document["paths"]["/tokenize"]["post"]["responses"]["503"]  # of connections
    told = {
        path
        for m, path in _operations(document)
        if document["paths"][path][m]["responses"]["503"] != full
    }
    assert unready == told - {"/livez"}  # which is about a model that is stuck


def test_a_verdict_without_numbers_is_told_of_every_route_that_has_it(
    inks: Path, document: dict[str, Any]
) -> None:
    app = create_app(settings(inks))
    for model in app.state.models:
        model.verdict = Verdict(False, math.nan, math.inf, math.nan, 0, "not a number")
    for path in ("/v1/models", "/v1/models/{name}", "/health"):
        answer = _ask(TestClient(app), "get", path)
        assert '"max_error":null,"bound":null,"training_error":null' in answer.text
        _check(document, "get", path, answer)


def test_connections_beyond_the_limit_are_told_of_every_route(document: dict[str, Any]) -> None:
    """Probes have places of their own."""
    error = {"$ref": "#/components/schemas/ErrorBody"}
    for method, path in _operations(document):
        told = document["paths"][path][method]["responses"]["503"]
        seconds = Draft202012Validator(told["headers"]["Retry-After"]["schema"])
        assert [seconds.is_valid(count) for count in (0, 1, 1.5)] == [False, True, False]
        schema = told["content"].get("application/json", {}).get("schema", {})
        assert (error in (schema, *schema.get("anyOf", ()))) is (path not in PROBES)


def test_a_host_of_somebody_else_is_told_of_every_route(
    inks: Path, document: dict[str, Any]
) -> None:
    chosen = settings(inks, allowed_hosts=("here.example",))
    client = TestClient(create_app(chosen), base_url="http://elsewhere.example")
    for method, path in _operations(document):
        answer = _ask(client, method, path)
        assert (answer.status_code == 403) is (path not in PROBES)
        _check(document, method, path, answer)


def test_a_failure_is_told_of_every_route(document: dict[str, Any]) -> None:
    for method, path in _operations(document):
        responses = document["paths"][path][method]["responses"]
        for status in ("403", "413", "500"):
            schema = responses[status]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorBody"}
    work = document["paths"]["/v1/completions"]["post"]["responses"]
    assert {"401", "408", "429", "431", "504"} <= work.keys()


def test_errors_of_one_status_share_its_description() -> None:
    assert fails(ServiceError, EngineFault).keys() == {500}
    assert "engine_fault" in fails(ServiceError, EngineFault)[500]["description"]
    assert "headers" not in fails(EngineFault)[500]


def test_headers_that_an_error_always_has_are_told_but_for_one_of_the_connection() -> None:
    told = fails(Unauthorized, CodedBody, RequestTimeout)
    always = {status: failure.get("headers", {}) for status, failure in told.items()}
    assert {status: list(headers) for status, headers in always.items()} == {
        401: ["WWW-Authenticate"], 415: ["Accept-Encoding"], 408: []
    }  # fmt: skip
    assert always[401]["WWW-Authenticate"]["required"]


def test_null_is_a_value_of_every_field_that_has_a_default(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ("CompletionRequest", "HandwritingRequest", "StreamOptions", "StyleRequest"):
        schema = schemas[name]
        assert schema["additionalProperties"] is False
        for field, told in schema["properties"].items():
            nullable = {"type": "null"} in told.get("anyOf", [])
            assert nullable == (field not in schema.get("required", [])), (name, field)


def test_every_answer_in_json_is_told_field_by_field(document: dict[str, Any]) -> None:
    for method, path in _operations(document):
        told = document["paths"][path][method]["responses"]["200"]["content"]
        if "application/json" in told:
            assert told["application/json"]["schema"].keys() == {"$ref"}, path


def test_an_answer_has_the_fields_that_are_told_and_a_card_alone_may_have_more(
    document: dict[str, Any],
) -> None:
    schemas = document["components"]["schemas"]
    answers, kinds = set(), [Answer]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        answers |= {kind.__name__} & schemas.keys()
    assert {"Completed", "Drawn", "ReadLine", "Health", "ErrorBody"} <= answers
    assert {n for n in answers if schemas[n].get("additionalProperties") is not False} == {"Card"}


def test_limits_of_numbers_are_in_the_schema(document: dict[str, Any]) -> None:
    fields = document["components"]["schemas"]["CompletionRequest"]["properties"]
    number = {"type": "number", "minimum": 0.0, "maximum": 2.0}
    assert fields["temperature"]["anyOf"] == [number, {"type": "null"}]
    count = {"type": "integer", "minimum": 0.0, "exclusiveMaximum": 2.0**53}
    assert count in fields["max_tokens"]["anyOf"]
    assert fields["stop"]["anyOf"][1]["maxItems"] == 16


def test_a_body_too_large_is_called_so_by_every_python() -> None:
    """Before 3.13 the standard library has another phrase."""
    assert fails(BodyTooLarge)[413]["description"] == "Content Too Large: body_too_large"
