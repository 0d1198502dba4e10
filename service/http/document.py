"""`/openapi.json`: the routes with every answer, header and example; and its page, `/docs`.

Examples stand in the files `examples.json` beside the routes. Their requests are written by hand
and their answers are recorded: `.venv/bin/python -m tests.service.http.examples`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute

from service.http.callers import is_open
from service.http.described import ANYWHERE, COMPONENTS, ErrorBody, error_examples
from service.http.files import PAGE, Files
from service.http.guard import POLICY

_SERVICE = Path(__file__).parents[1]
VERSION = "0.4.0"
_DESCRIPTION = """\
Layer-normalised recurrent networks, served as they were trained: text in the words of OpenAI's
completions, handwriting as drawings, what ink says, and all of them step by step over a WebSocket,
`/v1/online`, whose messages `/asyncapi.json` describes. State belongs to the caller, as signed
tokens."""
_OF_CALLERS = ("401", "429")
_KEY = "key"
_REQUEST_ID = {
    "description": "that of the request, or one made up; it is in the service's log too",
    "schema": {"type": "string"},
    "example": "5f0c2d3e8a914b7c",
}


class DescribedApp(FastAPI):
    """An application whose document has the errors and examples of this service."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            title="Evenkeel",
            summary="Recurrent networks, served as they were trained.",
            description=_DESCRIPTION,
            version=VERSION,
            contact={"name": "The authors of Evenkeel"},
            license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
            docs_url=None,  # FastAPI's own pages load scripts from elsewhere
            redoc_url=None,
            redirect_slashes=False,  # to a host that whoever asks has named
            responses=ANYWHERE,
            generate_unique_id_function=_operation_id,
            **options,
        )
        self.openapi_version = "3.2.0"  # the first that can say what a stream's events are

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _finished(super().openapi())
        return self.openapi_schema


def _operation_id(route: APIRoute) -> str:
    """What generated clients call a request: the name of the function that answers it."""
    return f"{route.name}_head" if route.methods == {"HEAD"} else route.name


def _finished(document: dict[str, Any]) -> dict[str, Any]:
    components = document["components"]
    schemas = components["schemas"]
    for theirs in ("HTTPValidationError", "ValidationError"):
        schemas.pop(theirs, None)
    errors = ErrorBody.model_json_schema(ref_template=COMPONENTS)
    schemas |= errors.pop("$defs") | {ErrorBody.__name__: errors}
    _move_definitions(document["paths"], schemas)
    components["examples"] = error_examples()
    components["headers"] = {"RequestId": _REQUEST_ID} | {
        name: {
            "description": "to browsers",
            "required": True,
            "schema": {"const": value},
            "example": value,
        }
        for name, value in POLICY.items()
    }
    components["securitySchemes"] = {_KEY: {"type": "http", "scheme": "bearer"}}
    document["security"] = [{_KEY: []}, {}]
    for path, methods in document["paths"].items():
        for operation in methods.values():
            _finish(operation, open_to_all=is_open(path))
    for method, path, examples in _examples():
        for name, example in examples.items():
            for operation in _operations(document["paths"][path], method.lower()):
                _show(operation, name, example)
    return document


def _move_definitions(node: Any, schemas: dict[str, Any]) -> None:
    """Bring the `$defs` of schemas to where their references point."""
    if isinstance(node, dict):
        schemas |= node.pop("$defs", {})
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            _move_definitions(child, schemas)


def _finish(operation: dict[str, Any], *, open_to_all: bool) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    if open_to_all:
        operation["security"] = []
        for status in _OF_CALLERS:
            responses.pop(status, None)
    for response in responses.values():
        known = {name: {"$ref": f"#/components/headers/{name}"} for name in POLICY}
        known["X-Request-Id"] = {"$ref": "#/components/headers/RequestId"}
        response["headers"] = known | response.get("headers", {})


def _examples() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in sorted(_SERVICE.rglob("examples.json")):
        for route, examples in json.loads(path.read_text("utf-8")).items():
            yield *route.split(" "), examples


def _operations(methods: dict[str, Any], method: str) -> list[dict[str, Any]]:
    """That of a method; HEAD is described as GET is."""
    also = ("head",) if method == "get" else ()
    return [methods[name] for name in (method, *also) if name in methods]


def _show(operation: dict[str, Any], name: str, example: dict[str, Any]) -> None:
    about = {"summary": example["summary"]}
    if "body" in example:
        content = operation["requestBody"]["content"]["application/json"]
        content.setdefault("examples", {})[name] = about | {"value": example["body"]}
    for parameter in operation.get("parameters", ()):
        parameter["example"] = example["parameters"][parameter["name"]]
    if "answer" in example:
        content = operation["responses"][str(example["status"])]["content"][example["kind"]]
        content.setdefault("examples", {})[name] = about | {"value": example["answer"]}


async def _page(request: Request) -> Response:
    return await PAGE.get_response("docs.html", request.scope)


def scripts() -> Files:
    """What the page loads from `/docs/ui`."""
    return Files(packages=[("fastapi_swagger", "resources")])


router = APIRouter(include_in_schema=False)
router.add_api_route("/docs", _page, methods=["GET", "HEAD"])
