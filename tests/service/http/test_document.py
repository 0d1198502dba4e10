"""`/openapi.json` has an example of everything, and every example is true."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from starlette.testclient import TestClient

from service.errors import ServiceError
from tests.service.http.examples import Example, administrator, ask, events, files
from tests.service.serving import Service, running, settings

_EXAMPLES = [
    pytest.param(route, name, example, id=f"{route} {name}")
    for routes in files().values()
    for route, examples in routes.items()
    for name, example in examples.items()
]
# Of the shipped models, and of these.
_NAMES = {"shakespeare": "letters", "handwriting": "scrawl", "ada": "upright"}
_NOT_SHOWN = {"application/pdf", "image/png"}
_PROBES = {"/livez", "/readyz"}
_EACH = pytest.mark.parametrize(("route", "name", "example"), _EXAMPLES)


@pytest.fixture(scope="module")
def client(inks: Path) -> Iterator[TestClient]:
    # Streams are short here, and some of their events have what it takes to go on.
    with running(settings(inks, runner="scan", checkpoint_steps=8)) as service:
        yield administrator(service)


@pytest.fixture(scope="module")
def document(client: TestClient) -> dict[str, Any]:
    return dict(client.get("/openapi.json").json())


@pytest.fixture(scope="module")
def state(client: TestClient) -> str:
    body = {"model": "letters", "max_tokens": 1, "return_state": True}
    return str(client.post("/v1/completions", json=body).json()["choices"][0]["state"])


def _responses(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for status, response in operation["responses"].items():
                yield f"{method} {path}", status, response


def _resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    for part in node["$ref"].removeprefix("#/").split("/"):
        document = document[part]
    return document


def _check(document: dict[str, Any], route: str, example: Example, answer: Any) -> None:
    """The answer is one of the kind the document tells of."""
    method, path = route.split(" ")
    responses = document["paths"][path][method.lower()]["responses"]
    content = responses[str(example["status"])]["content"][example["kind"]]
    components = {"components": document["components"]}
    if example["kind"] == "application/json":
        Draft202012Validator(content["schema"] | components).validate(answer)
    elif example["kind"] == "text/event-stream":
        item = content["itemSchema"]
        data = item["properties"]["data"]["anyOf"][1]
        # Without it the schema of the content says nothing.
        assert data["contentMediaType"] == "application/json"
        said = Draft202012Validator(data["contentSchema"] | components)
        *stream, done = events(answer)
        assert done["data"] == "[DONE]"
        for event in stream:
            Draft202012Validator(item).validate(event)
            said.validate(json.loads(event["data"]))


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.2.0"
    validate(document)


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/handwriting"])
def test_an_event_may_have_no_id_but_has_data(document: dict[str, Any], path: str) -> None:
    answer = document["paths"][path]["post"]["responses"]["200"]["content"]["text/event-stream"]
    event = Draft202012Validator(answer["itemSchema"] | {"components": document["components"]})
    assert event.is_valid({"data": "[DONE]"})
    assert not event.is_valid({"id": "0"})
    assert not event.is_valid("[DONE]")


@_EACH
def test_what_an_example_asks_is_answered_as_told(
    client: TestClient,
    document: dict[str, Any],
    state: str,
    route: str,
    name: str,
    example: Example,
) -> None:
    answer = ask(client, route, example, state, **_NAMES)
    assert answer.status_code == example["status"] == 200, answer.text
    assert answer.headers["content-type"].partition(";")[0] == example["kind"]
    if route.endswith("/unload"):  # others ask the same service for it
        assert client.post("/v1/models/letters/load").status_code == 200
    is_json = example["kind"] == "application/json"
    _check(document, route, example, answer.json() if is_json else answer.text)


@_EACH
def test_what_an_example_shows_is_what_is_told(
    document: dict[str, Any], route: str, name: str, example: Example
) -> None:
    if example["kind"] not in _NOT_SHOWN:
        _check(document, route, example, example["answer"])


def test_every_route_is_in_a_group_of_the_page(document: dict[str, Any]) -> None:
    """Or tools put it under a heading that they make up."""
    for methods in document["paths"].values():
        for operation in methods.values():
            assert operation.get("tags"), operation["operationId"]


def test_generated_clients_call_a_request_by_one_short_name(document: dict[str, Any]) -> None:
    names = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    ]
    assert len(set(names)) == len(names)
    assert {"completions", "handwriting", "read", "get_model", "livez", "livez_head"} < set(names)
    assert max(len(name.removesuffix("_head")) for name in names) <= len("tokenizer_info")


def test_every_request_answer_and_header_has_an_example(document: dict[str, Any]) -> None:
    for methods in document["paths"].values():
        for operation in methods.values():
            for content in operation.get("requestBody", {"content": {}})["content"].values():
                assert content["examples"], operation["operationId"]
            assert all("example" in parameter for parameter in operation.get("parameters", ()))
    for route, status, response in _responses(document):
        for kind, content in response["content"].items():
            shown = "example" in content or "examples" in content
            assert kind in _NOT_SHOWN or shown, (route, status, kind)
            if kind == "application/json" and "example" in content:
                schema = content["schema"] | {"components": document["components"]}
                Draft202012Validator(schema).validate(content["example"])
        for name, told in response["headers"].items():
            header = _resolved(document, told)
            assert "example" in header, (route, status, name)
            Draft202012Validator(header["schema"]).validate(header["example"])


def test_the_example_of_an_error_is_its_body(document: dict[str, Any]) -> None:
    schema = document["components"]["schemas"]["ErrorBody"]
    judge = Draft202012Validator(schema | {"components": document["components"]})
    shown = document["components"]["examples"]
    for example in shown.values():
        judge.validate(example["value"])
    codes = {example["value"]["error"]["code"] for example in shown.values()}
    assert {kind.code for kind in ServiceError.__subclasses__()} <= codes


def test_a_key_may_be_wanted_anywhere_but_at_the_probes(document: dict[str, Any]) -> None:
    assert document["security"] == [{"key": []}, {}]
    schemes = document["components"]["securitySchemes"]
    assert schemes == {"key": {"type": "http", "scheme": "bearer"}}
    for route, _, _ in _responses(document):
        method, path = route.split(" ")
        operation = document["paths"][path][method]
        assert (operation.get("security") == []) == (path in _PROBES)
        for status in ("401", "429"):
            assert (status in operation["responses"]) == (path not in _PROBES)


def test_the_version_is_that_of_the_project(document: dict[str, Any]) -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert document["info"]["version"] == project["version"]
    assert document["info"]["license"]["identifier"] == project["license"]


def test_head_is_told_as_get_is(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        assert ("head" in methods) is ("get" in methods), path
        head, get = (
            {
                status: (told["headers"], {k: c.get("example") for k, c in told["content"].items()})
                for status, told in methods.get(method, {"responses": {}})["responses"].items()
            }
            for method in ("head", "get")
        )
        assert head == get, path


def test_every_answer_names_its_request(document: dict[str, Any]) -> None:
    assert all("X-Request-Id" in response["headers"] for _, _, response in _responses(document))


def test_every_header_of_an_answer_is_declared(
    client: TestClient, document: dict[str, Any]
) -> None:
    for path, asked in (("/v1/models", "/v1/models"), ("/v1/models/{name}", "/v1/models/none")):
        answer = client.get(asked)
        declared = document["paths"][path]["get"]["responses"][str(answer.status_code)]["headers"]
        headers = {name: _resolved(document, header) for name, header in declared.items()}
        told = set(answer.headers) - {"content-type", "content-length"}
        assert told == {name.lower() for name in headers}
        for name, header in headers.items():
            Draft202012Validator(header["schema"]).validate(answer.headers[name])


def test_who_has_no_key_hears_how_to_show_one(document: dict[str, Any]) -> None:
    for _, status, response in _responses(document):
        assert ("WWW-Authenticate" in response["headers"]) is (status == "401")


@pytest.mark.parametrize(
    "path", ["/docs", "/docs/ui/swagger-ui.css", "/docs/ui/swagger-ui-bundle.js"]
)
def test_the_page_of_the_document_is_served_from_here(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert "//" not in answer.text if path == "/docs" else len(answer.text) > 100_000


def test_the_page_of_the_document_is_asked_for_again_after_an_update(client: TestClient) -> None:
    assert client.get("/docs").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/openapi.json", "/asyncapi.json"])
def test_who_asks_for_a_document_is_counted_with_its_path(scan: Service, path: str) -> None:
    labels = {"path": path, "status": "200", "code": ""}
    counted = scan.app.state.metrics.registry.get_sample_value
    before = counted("evenkeel_http_requests_total", labels) or 0
    assert scan.client.get(path).status_code == 200
    assert counted("evenkeel_http_requests_total", labels) == before + 1
