"""A page of another site cannot use the service, and browsers are told what answers are not for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from service.app import create_app
from service.http.guard import POLICY, Guard, hosts_of
from tests.service.serving import Service, listening, running, settings, told_by

_FOREIGN = "https://evil.example"
_BODY: dict[str, Any] = {"model": "letters", "max_tokens": 1}
_PATHS = ["/", "/livez", "/v1/models", "/static/page.js", "/nowhere"]


@pytest.fixture(scope="module")
def friendly(letters: Path) -> Iterator[Service]:
    """A service that another origin may use, known by two names."""
    chosen = settings(
        letters,
        allowed_origins=("https://friend.example",),
        allowed_hosts=("testserver", "keel.example"),
    )
    with running(chosen) as started:
        yield started


def _origin(url: httpx.URL) -> str:
    return str(url).rstrip("/")


@pytest.mark.parametrize("path", ["/", "/docs", "/static/page.js"])
@pytest.mark.parametrize("wanted", ["bytes=0-3", "bytes=3-1", "lines=1-2", "bytes=x", ""])
def test_files_are_answered_whole(scan: Service, path: str, wanted: str) -> None:
    answer = scan.client.get(path, headers={"range": wanted})
    assert (answer.status_code, answer.content) == (200, scan.client.get(path).content)
    assert "accept-ranges" not in answer.headers


def test_cookies_are_heard_by_nobody() -> None:
    """A browser sends those of every service on the same host, and the framework takes them apart
    for each request: 32 KB in 6 ms."""
    heard: list[Any] = []

    async def hears(scope: Scope, receive: Receive, send: Send) -> None:
        heard.extend(scope["headers"])

    for kind in ("http", "websocket"):
        headers = [(b"cookie", b'a="\\101"'), (b"host", b"x"), (b"cookie", b"b=c")]
        scope = {"type": kind, "method": "GET", "path": "/", "headers": headers}
        told_by(Guard(hears, frozenset(), frozenset()), scope)
    assert heard == [(b"host", b"x")] * 2


@pytest.mark.parametrize("path", _PATHS)
def test_every_answer_says_what_it_is_not_for(scan: Service, path: str) -> None:
    headers = scan.client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    policy = headers["content-security-policy"]
    never = ("object-src", "base-uri", "form-action", "frame-ancestors")
    told = {"default-src 'self'", *(f"{what} 'none'" for what in never)}
    assert told <= set(policy.split("; "))
    assert "unsafe" not in policy


def test_what_is_answered_to_one_is_kept_for_no_other(scan: Service) -> None:
    """Neither by a browser nor by a proxy, which may keep even a 404 that does not forbid it. Only
    files are asked for again, as they are everybody's."""
    post, get = scan.client.post, scan.client.get
    ours = [post("/v1/completions", json=_BODY), post("/v1/completions", json={"n": 0})]
    ours += [post("/v1/completions", json=_BODY | {"stream": True}), get("/static/none.js")]
    ours += [get(path) for path in ("/v1/models", "/v1/models/none", "/metrics", "/nowhere")]
    assert {answer.headers["cache-control"] for answer in ours} == {"no-store"}
    files = [get(path) for path in ("/", "/docs", "/static/page.js")]
    assert {answer.headers["cache-control"] for answer in files} == {"no-cache"}


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/models/letters/attest"])
def test_a_foreign_origin_may_not_post(scan: Service, path: str) -> None:
    post, mine = scan.client.post, scan.client.base_url
    assert post(path, json=_BODY, headers={"origin": _FOREIGN}).status_code == 403
    assert post(path, json=_BODY, headers={"origin": "null"}).status_code == 403
    assert (
        post(path, json=_BODY, headers={"origin": _origin(mine.copy_with(port=81))}).status_code
        == 403
    )
    assert post(path, json=_BODY, headers={"origin": _origin(mine)}).status_code == 200
    assert post(path, json=_BODY).status_code == 200  # no browser


def test_a_refusal_says_what_it_is_not_for(scan: Service) -> None:
    refused = scan.client.post("/v1/completions", json=_BODY, headers={"origin": _FOREIGN})
    assert refused.status_code == 403
    assert refused.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in refused.headers["content-security-policy"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_foreign_origin_may_look(scan: Service, method: str) -> None:
    answer = scan.client.request(method, "/livez", headers={"origin": _FOREIGN})
    assert answer.status_code == 200


@pytest.mark.parametrize("origin", ["http://testserver", "http://TESTSERVER"])
def test_a_host_is_the_same_however_it_is_spelt(scan: Service, origin: str) -> None:
    headers = {"host": "TestServer", "origin": origin}
    assert scan.client.post("/v1/completions", json=_BODY, headers=headers).status_code == 200


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "//", "", "http://[v1.]"])
def test_an_origin_that_is_none_is_a_foreign_one(scan: Service, origin: str) -> None:
    answer = scan.client.post("/v1/completions", json=_BODY, headers={"origin": origin})
    assert answer.status_code == 403


def test_a_length_of_digits_without_end_is_too_large(scan: Service) -> None:
    headers = {"content-length": "0" * 5000}
    assert scan.client.post("/v1/completions", content=b"", headers=headers).status_code == 413


def test_a_foreign_origin_may_not_open_a_socket(scan: Service) -> None:
    connect = scan.client.websocket_connect
    with pytest.raises(WebSocketDisconnect), connect("/v1/online", headers={"origin": _FOREIGN}):
        pass
    mine = _origin(scan.client.base_url)
    with connect("/v1/online", headers={"origin": mine}) as socket:
        socket.send_json({"model": "letters"})
        assert socket.receive_json()["model"] == "letters"


def test_a_friend_may_and_is_told_so(friendly: Service) -> None:
    origin = {"origin": "https://friend.example"}
    answer = friendly.client.post("/v1/completions", json=_BODY, headers=origin)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://friend.example"
    assert answer.headers["access-control-expose-headers"] == "*"  # or it could read no id
    foreign = friendly.client.get("/v1/models", headers={"origin": _FOREIGN})
    assert "access-control-allow-origin" not in foreign.headers


def test_an_unexpected_error_says_what_any_answer_does(letters: Path) -> None:
    """To browsers, and to a friend that it may read it."""
    origin = "https://friend.example"
    app = create_app(settings(letters, allowed_origins=(origin,)))
    app.router.routes.insert(0, Route("/broken", _breaks))
    client = TestClient(app, raise_server_exceptions=False)
    answer = client.get("/broken", headers={"origin": origin})
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "server_error")
    assert all(answer.headers[name] == value for name, value in POLICY.items())
    assert answer.headers["access-control-allow-origin"] == origin


async def _breaks(request: Request) -> Response:
    raise RuntimeError("nobody thought of this")


def test_a_preflight_that_is_refused_has_the_error_body(friendly: Service) -> None:
    asked = {"origin": _FOREIGN, "access-control-request-method": "POST"}
    answer = friendly.client.options("/v1/completions", headers=asked)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert "origin" in answer.json()["error"]["message"]
    assert "access-control-allow-origin" not in answer.headers
    assert "Origin" in answer.headers["vary"]


def test_without_friends_nobody_is_told_that_they_may(scan: Service) -> None:
    answer = scan.client.get("/v1/models", headers={"origin": _FOREIGN})
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("keel.example", 200),
        ("KEEL.example:8000", 200),
        ("testserver", 200),
        ("evil.example", 403),
        ("keel.example.evil.example", 403),
        ("evil.keel.example", 403),
        ("evilkeel.example", 403),
        ("", 403),
    ],
)
def test_only_its_own_names_are_answered(friendly: Service, host: str, status: int) -> None:
    answer = friendly.client.get("/v1/models", headers={"host": host})
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize("path", ["/livez", "/v1/models"])
def test_a_request_names_one_host(friendly: Service, path: str) -> None:
    twice = [("host", "keel.example"), ("host", "keel.example")]
    answer = friendly.client.get(path, headers=twice)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, None)


@pytest.mark.parametrize(
    "host", ["[", "a b", "keel.example/x", "me@keel.example", "keel.example:x", "keel.example?"]
)
def test_what_is_no_host_is_refused_whatever_names_are_answered(scan: Service, host: str) -> None:
    """A URL made with it would have another path. Probes ask as they please."""
    answer = scan.client.get("/v1/models", headers={"host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, None)
    assert scan.client.get("/livez", headers={"host": host}).status_code == 200
    fine = ("keel.example:", "KEEL_1.example:80", "[fe80::1]:8000", "127.0.0.1", "")
    for name in fine:
        assert scan.client.get("/v1/models", headers={"host": name}).status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_probes_come_by_address_whatever_the_names_are(friendly: Service, path: str) -> None:
    answer = friendly.client.get(path, headers={"host": "10.1.2.3:8000"})
    assert answer.status_code == 200


def test_the_address_a_connection_came_in_at_is_answered_and_no_other(letters: Path) -> None:
    with listening(settings(letters, allowed_hosts=("keel.example",))) as (url, _):
        port = httpx.URL(url).port
        for host, status in ((f"127.0.0.1:{port}", 200), (f"127.0.0.2:{port}", 403)):
            assert httpx.get(f"{url}/metrics", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "localhost", "LocalHost", "127.0.0.9", "::ffff:127.0.0.1"]
)
def test_on_the_loopback_interface_only_its_names_are_answered(address: str) -> None:
    assert hosts_of(address, ()) == {"localhost", "127.0.0.1", "::1"}


def test_elsewhere_or_if_asked_to_any_name_is_answered() -> None:
    assert hosts_of("0.0.0.0", ()) == hosts_of("::ffff:10.0.0.1", ()) == frozenset()
    assert hosts_of("127.0.0.1", ("*",)) == frozenset()
    named = ("Keel.example", "all.example.", "::0:1")
    assert hosts_of("0.0.0.0", named) == {"keel.example", "all.example", "::1"}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *[(host, 200) for host in ("[::1]", "[::1]:8000", "127.0.0.1:8000", "LOCALHOST:8000")],
        *[(host, 200) for host in ("localhost.", "localhost.:8000", "[0:0:0:0:0:0:0:1]:8000")],
        *[(host, 403) for host in ("[::2]:8000", "evil.example", "evil.example.", ".", "")],
    ],
)
def test_a_host_is_told_from_its_port(host: str, status: int) -> None:
    told = _asked({"type": "http", "method": "GET"}, host)
    assert (told["type"], told["status"]) == ("http.response.start", status)


def test_a_socket_that_is_refused_says_what_the_answer_is_not_for() -> None:
    told = _asked({"type": "websocket", "extensions": {"websocket.http.response": {}}}, "[::1]")
    assert told["type"] == "websocket.http.response.start"
    assert dict(told["headers"])[b"x-frame-options"] == b"DENY"


@pytest.mark.parametrize(
    ("path", "status"), [("/livez", 200), ("/readyz", 200), ("/livez/", 403), ("/readyz/x", 403)]
)
def test_by_any_name_a_probe_is_answered_and_nothing_below_it(path: str, status: int) -> None:
    told = _asked({"type": "http", "method": "GET", "path": path}, "evil.example")
    assert told["status"] == status


@pytest.mark.parametrize(
    ("origin", "status"), [("localhost:8000", 200), ("localhost", 403), ("localhost:80", 403)]
)
def test_a_page_of_another_port_is_of_another_origin(origin: str, status: int) -> None:
    headers = [(b"host", b"localhost:8000"), (b"origin", f"http://{origin}".encode())]
    told = _asked({"type": "http", "method": "POST", "headers": headers}, "")
    assert told["status"] == status


@pytest.mark.parametrize(("host", "status"), [("192.0.2.7", 200), ("evil.example", 403)])
def test_where_a_connection_came_in_is_a_name_only_as_an_address(host: str, status: int) -> None:
    """Whatever a server takes for that: some believe the Host."""
    told = _asked({"type": "http", "method": "GET", "server": (host, 80)}, host)
    assert told["status"] == status


def _asked(scope: dict[str, Any], host: str) -> Message:
    """The beginning of an answer on the loopback interface."""

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        websocket = "websocket." if scope["type"] == "websocket" else ""
        await send({"type": f"{websocket}http.response.start", "status": 200, "headers": []})

    about = {"path": "/v1/models", "headers": [(b"host", host.encode())]}
    guard = Guard(answers, hosts_of("127.0.0.1", ()), frozenset())
    return told_by(guard, about | scope)[0]
