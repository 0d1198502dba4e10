"""A wrong method is told the right ones, a wrong path where to go, and a body without a type what
to say about itself."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import FileResponse
from starlette.testclient import TestClient, WebSocketDenialResponse

from service.app import create_app
from service.http.files import PAGE
from tests.service.serving import Service, settings
from tests.service.writing import InkService

_GOT = (
    *("/", "/docs", "/static/page.js", "/openapi.json", "/asyncapi.json", "/livez", "/readyz"),
    *("/health", "/metrics", "/v1/models", "/v1/models/letters", "/v1/models/none", "/v1/online"),
    *("/v1/styles", "/v1/styles/upright/preview.svg", "/tokenizer_info"),
)


@pytest.mark.parametrize("path", _GOT)
def test_head_is_get_without_the_body(ink: InkService, path: str) -> None:
    """Wherever there is something to get (RFC 9110 §9.1)."""
    got, asked = ink.client.get(path), ink.client.head(path)
    assert asked.status_code == got.status_code != 405
    assert asked.headers.keys() == got.headers.keys()
    assert asked.headers["content-type"] == got.headers["content-type"]


def test_a_page_that_is_had_already_is_not_sent_again(scan: Service) -> None:
    for path in ("/", "/static/page.js"):
        had = scan.client.get(path)
        again = scan.client.get(path, headers={"If-None-Match": had.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["cache-control"] == had.headers["cache-control"] == "no-cache"


def test_a_file_that_has_changed_is_sent_again_whatever_its_time(
    scan: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that can be built again byte for byte give all files one time (RFC 9110 §8.8.1), by
    which, and by the size, files had their tags before."""
    monkeypatch.setattr(PAGE, "all_directories", [tmp_path])

    def put(content: str) -> Path:
        (tmp_path / "next").write_text(content)
        os.utime(tmp_path / "next", (0, 0))
        return (tmp_path / "next").replace(tmp_path / "page.js")

    file = put("old")
    of_time_and_size = FileResponse(file, stat_result=file.stat()).headers
    had = [("If-None-Match", scan.client.get("/static/page.js").headers["etag"])]
    had.append(("If-None-Match", of_time_and_size["etag"]))
    had.append(("If-Modified-Since", of_time_and_size["last-modified"]))
    put("new")
    for name, value in had:
        again = scan.client.get("/static/page.js", headers={name: value})
        assert (again.status_code, again.text) == (200, "new"), name


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/ui/swagger-ui.css", "/static/page.js"])
def test_a_file_is_had_by_what_is_in_it_and_not_by_its_time(scan: Service, path: str) -> None:
    """Replicas, and a service that was installed again, have other times."""
    answer = scan.client.get(path)
    assert answer.headers["etag"] == f'"{sha256(answer.content).hexdigest()}"'
    assert "last-modified" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/completions", "POST"),
        ("GET", "/v1/chat/completions", "POST"),
        ("DELETE", "/v1/models", "GET, HEAD"),
        ("PUT", "/v1/models/letters", "GET, HEAD"),
        ("GET", "/v1/models/letters/attest", "POST"),
        ("PUT", "/v1/styles", "GET, HEAD, POST"),
        ("POST", "/v1/styles/upright/preview.svg", "GET, HEAD"),
        ("HEAD", "/v1/handwriting", "POST"),
        ("POST", "/livez", "GET, HEAD"),
        ("DELETE", "/readyz", "GET, HEAD"),
        ("PATCH", "/health", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
        ("POST", "/openapi.json", "GET, HEAD"),
        ("POST", "/static/index.html", "GET, HEAD"),
        ("POST", "/tokenizer_info", "GET, HEAD"),
        ("GET", "/tokenize", "POST"),
        ("OPTIONS", "/detokenize", "POST"),
    ],
)
def test_a_405_has_the_methods_that_would_do(
    ink: InkService, method: str, path: str, allowed: str
) -> None:
    answer = ink.client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    if method != "HEAD":
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert error["message"] == f"method is {method}; {path!r} takes {allowed}"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("body", [{}, {"model": "letters", "messages": []}])
def test_chat_says_where_to_go(scan: Service, path: str, body: dict[str, Any]) -> None:
    answer = scan.client.post(path, json=body)
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["code"] == "unknown_url"
    assert "/v1/completions" in error["message"]


@pytest.mark.parametrize(
    "path", ["/nowhere", "/v1/v1/completions", "/v1/models/", "/static/nothing.js"]
)
def test_where_there_is_nothing_one_is_told_where_to_look(scan: Service, path: str) -> None:
    answer = scan.client.get(path)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (404, "unknown_url")
    assert path in error["message"]
    assert "/docs" in error["message"]


@pytest.mark.parametrize(
    "path", ["/nowhere", "/v1/models", "/", "/docs", "/docs/x.js", "/static/page.js"]
)
def test_where_there_is_no_socket_one_is_told_where_there_is(scan: Service, path: str) -> None:
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        scan.client.websocket_connect(path),
    ):
        pass
    error = refused.value.json()["error"]
    assert (refused.value.status_code, error["code"]) == (404, "unknown_url")
    assert "/v1/online" in error["message"]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/handwriting", "/v1/styles", "/tokenize"])
@pytest.mark.parametrize(
    "headers",
    [{}, {"content-type": "application/x-www-form-urlencoded"}, {"content-type": "text/plain"}],
    ids=str,
)
def test_a_body_without_its_type_is_told_to_set_it(
    ink: InkService, path: str, headers: dict[str, str]
) -> None:
    """As `curl -d '{...}'` sends it."""
    answer = ink.client.post(path, content=b'{"model": "letters", "text": "a"}', headers=headers)
    assert answer.status_code == 400
    assert "set content-type: application/json" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"]
)
def test_json_by_any_of_its_names_is_read(scan: Service, kind: str) -> None:
    content = b'{"model": "letters", "max_tokens": 1}'
    answer = scan.client.post("/v1/completions", content=content, headers={"content-type": kind})
    assert answer.status_code == 200


def test_a_service_that_is_not_ready_says_when_to_ask_again(inks: Path) -> None:
    client = TestClient(create_app(settings(inks)))  # its models never start
    for method in ("GET", "HEAD"):
        for path in ("/readyz", "/health"):
            answer = client.request(method, path)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    answer = client.post("/v1/completions", json={"model": "letters"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
