"""Where there are API keys, nothing but the page and the probes is answered without one, and a key
can ask for no more than it may."""

import fcntl
import json
import os
import secrets
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient, WebSocketDenialResponse
from websockets.sync.client import connect

from service.app import create_app
from service.http.addresses import network
from service.http.callers import Callers
from service.http.keys import BadKeys, Keys, new_key, read_keys
from tests.service.serving import (
    Service,
    bearing,
    eventually,
    held,
    listening,
    running,
    settings,
    told_by,
)

_OPEN = {"/", "/livez", "/readyz"}
_BODY: dict[str, Any] = {"model": "letters", "max_tokens": 1}
_FRIEND = "https://friend.example"


class _Ring:
    """A service, and a key for each purpose."""

    def __init__(self, folder: Path, letters: Path) -> None:
        self.file = folder / "keys.toml"
        self.plain = new_key(self.file, "plain")
        self.admin = new_key(self.file, "admin", admin=True)
        self.single = new_key(self.file, "single", concurrency=1)
        self.settings = settings(
            letters,
            keys=self.file,
            allowed_origins=(_FRIEND,),
            max_tokens=10**8,
            max_request_steps=10**9,
        )


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory, letters: Path) -> _Ring:
    return _Ring(tmp_path_factory.mktemp("keys"), letters)


@pytest.fixture(scope="module")
def locked(ring: _Ring) -> Iterator[Service]:
    with running(ring.settings) as service:
        yield service


@pytest.fixture(scope="module")
def listened(ring: _Ring) -> Iterator[tuple[str, FastAPI]]:
    """A real server of the same."""
    with listening(ring.settings) as started:
        yield started


def test_every_route_wants_a_key_but_the_page_and_the_probes(locked: Service, ring: _Ring) -> None:
    document = locked.client.get("/openapi.json", headers=bearing(ring.plain)).json()
    asked = {("get", "/openapi.json"), ("get", "/nowhere"), ("post", "/v1//completions")}
    asked.add(("options", "/v1/models"))
    asked |= {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert len(asked) > 15
    for method, path in asked:
        answer = locked.client.request(method, path.format(name="letters", style="x"))
        if path in _OPEN:
            assert answer.status_code == 200, path
            continue
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == 'Bearer realm="evenkeel"'
        if method != "head":
            assert answer.json()["error"]["code"] == "invalid_api_key"


def test_the_page_needs_no_key(locked: Service) -> None:
    of_the_api = ("/docs", "/docs/ui/swagger-ui.css")  # whose document wants one
    for path in ("/", "/static/page.js", "/static/style.css", "/livez", "/readyz", *of_the_api):
        assert locked.client.get(path).status_code == 200


def test_a_key_opens(locked: Service, ring: _Ring) -> None:
    answer = locked.client.post("/v1/completions", json=_BODY, headers=bearing(ring.plain))
    assert answer.status_code == 200
    assert locked.client.get("/metrics", headers=bearing(ring.plain)).status_code == 200


def test_of_1000_wrong_keys_none_opens(locked: Service, ring: _Ring) -> None:
    near = [ring.plain[:-1], f"{ring.plain}x", ring.plain.upper(), "", "ek-"]
    made_up = [f"ek-{secrets.token_urlsafe(32)}" for _ in range(995)]
    keys = Keys(ring.file)
    assert [key for key in near + made_up if keys.find(key)] == []
    for key in (*near, *made_up[:20]):
        answer = locked.client.get("/v1/models", headers=bearing(key))
        assert answer.status_code == 401


def test_an_error_of_a_file_of_keys_has_nothing_of_what_is_there(tmp_path: Path) -> None:
    """Someone may have put the key itself where its hash belongs; a log may have the traceback."""
    file = tmp_path / "keys.toml"
    file.write_text('[a]\nsha256 = "ek-secret"\n')
    with pytest.raises(BadKeys) as refusal:
        read_keys(file)
    assert "secret" not in "".join(traceback.format_exception(refusal.value))


def test_a_key_that_is_not_known_is_told_from_none(locked: Service, ring: _Ring) -> None:
    for headers, told in (
        (bearing("ek-none"), "this API key is not known"),
        ({}, "wants an API key"),
    ):
        refused = locked.client.get("/v1/models", headers=headers).json()["error"]
        assert told in refused["message"]
        assert refused["code"] == "invalid_api_key"


@pytest.mark.parametrize("kind", ["Basic", "", "Bearerx"])
def test_a_key_comes_as_a_bearer(locked: Service, ring: _Ring, kind: str) -> None:
    headers = {"authorization": f"{kind} {ring.plain}"}
    assert locked.client.get("/v1/models", headers=headers).status_code == 401
    assert locked.client.get(f"/v1/models?api_key={ring.plain}").status_code == 401


def test_a_socket_wants_a_key(locked: Service, ring: _Ring) -> None:
    with (
        pytest.raises(WebSocketDenialResponse) as denied,
        locked.client.websocket_connect("/v1/online"),
    ):
        pass
    assert denied.value.status_code == 401
    assert denied.value.json()["error"]["code"] == "invalid_api_key"
    with locked.client.websocket_connect("/v1/online", headers=bearing(ring.plain)) as online:
        online.send_json({"model": "letters"})
        assert online.receive_json()["model"] == "letters"


def test_a_browser_offers_it_as_a_subprotocol_and_does_not_get_it_back(
    listened: tuple[str, FastAPI], ring: _Ring
) -> None:
    url, _ = listened
    offered = ["evenkeel", f"bearer.{ring.plain}"]
    with connect(f"{url.replace('http', 'ws')}/v1/online", subprotocols=offered) as online:
        assert online.subprotocol == "evenkeel"
        online.send('{"model": "letters"}')
        assert "letters" in online.recv()
        assert ring.plain not in str(online.response.headers)


def test_the_most_talkative_log_has_no_key(
    listened: tuple[str, FastAPI], ring: _Ring, caplog: pytest.LogCaptureFixture
) -> None:
    """The library of WebSockets tells all headers to whoever looks for faults."""
    with caplog.at_level("DEBUG", "uvicorn.error"):
        asked = f"{listened[0].replace('http', 'ws')}/v1/online"
        with connect(asked, additional_headers=bearing(ring.plain)) as online:
            online.send('{"model": "letters"}')
            assert "letters" in online.recv()
    assert ring.plain not in caplog.text


def test_a_preflight_needs_no_key_and_may_announce_one(locked: Service, ring: _Ring) -> None:
    announced = {
        "origin": _FRIEND,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    answer = locked.client.options("/v1/completions", headers=announced)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == _FRIEND
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()
    assert "POST" in answer.headers["access-control-allow-methods"]
    refused = locked.client.post("/v1/completions", json=_BODY, headers={"origin": _FRIEND})
    assert refused.status_code == 401  # which its page may read
    assert refused.headers["access-control-allow-origin"] == _FRIEND


def test_a_second_request_of_a_single_key_waits_for_the_first(
    listened: tuple[str, FastAPI], ring: _Ring
) -> None:
    url = f"{listened[0]}/v1/completions"
    endless = {"model": "letters", "max_tokens": 10**8, "stream": True}
    headers = bearing(ring.single)
    with httpx.stream("POST", url, json=endless, headers=headers, timeout=30) as first:
        lines = first.iter_lines()  # which closes the connection when it goes
        assert next(lines) == "id: 0"
        refused = httpx.post(url, json=_BODY, headers=headers)
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "rate_limited"
        assert int(refused.headers["retry-after"]) >= 1
        assert httpx.post(url, json=_BODY, headers=bearing(ring.plain)).status_code == 200

    def succeeds() -> bool:
        return httpx.post(url, json=_BODY, headers=headers).status_code == 200

    assert eventually(succeeds)


def test_ten_at_once_of_a_single_key_are_one(listened: tuple[str, FastAPI], ring: _Ring) -> None:
    url, app = listened
    headers, statuses = bearing(ring.single), list[int]()

    def ask() -> None:
        answer = httpx.post(f"{url}/v1/completions", json=_BODY, headers=headers, timeout=60)
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=ask) for _ in range(10)]
    with held(app.state.models["letters"]):
        for thread in threads:
            thread.start()
        assert eventually(lambda: len(statuses) == 9)
    for thread in threads:
        thread.join()
    assert statuses == [*[429] * 9, 200]


def test_a_new_key_and_one_that_is_gone_are_noticed(
    ring: _Ring, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "service.http.keys")
    file = ring.file.with_name("changing.toml")
    first = new_key(file, "first")
    keys = Keys(file)
    second = new_key(file, "second", admin=True)
    keys.look()
    keys.look()
    assert keys.find(second) == ("second", read_keys(file)["second"])
    assert caplog.messages == [f"{file}: read again, 2 keys"]  # once for a change
    file.write_text("[broken")
    keys.look()
    assert keys.find(first) is not None  # a bad file changes nothing
    file.write_text("")
    keys.look()
    assert keys.find(first) is None


def test_the_file_does_not_hold_the_key(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    key = new_key(file, "me", concurrency=2, bytes_per_minute=1000)
    assert len(key) > 40
    assert key not in file.read_text()
    assert key.removeprefix("ek-") not in file.read_text()
    assert read_keys(file)["me"].concurrency == 2
    assert list(tmp_path.iterdir()) == [file]


def test_a_key_ends_with_its_time(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    old, new = new_key(file, "old"), new_key(file, "new")
    text = file.read_text().replace("[new]", "expires = 2020-01-01\n\n[new]")
    file.write_text(text + "expires = 2999-01-01T00:00:00\n")
    keys = Keys(file)
    assert keys.find(old) is None
    assert keys.find(new) is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a]\nsha256 = 'short'\n", "a.sha256: String should match"),
        (f"[a]\nsha256 = '{'A' * 64}'\n", "a.sha256: String should match"),
        ("[a]\n", "a.sha256: Field required"),
        (f"[a]\nsha256 = '{'0' * 64}'\nadmn = true\n", "a.admn"),
        (f"[a]\nsha256 = '{'0' * 64}'\nconcurrency = 0\n", "a.concurrency: .* or equal to 1"),
        (f"[a]\nsha256 = '{'0' * 64}'\nbytes_per_minute = {2**63}\n", "a.bytes_per_minute: .*"),
        (f"[a]\nsha256 = '{'0' * 64}'\nconcurrency = true\n", "a.concurrency: .* integer"),
        (f"[a]\nsha256 = '{'0' * 64}'\n[b]\nsha256 = '{'0' * 64}'", "a and b are the same key"),
        (
            f"[a]\nsha256 = '{'0' * 64}'\n[b]\nexpires = 2020-01-01\nsha256 = '{'0' * 64}'",
            "a and b",
        ),
        ("[a\n", "keys.toml"),
    ],
)
def test_a_bad_file_is_refused_at_start(
    tmp_path: Path, letters: Path, text: str, said: str
) -> None:
    (tmp_path / "keys.toml").write_text(text)
    with pytest.raises(BadKeys, match=said):
        create_app(settings(letters, keys=tmp_path / "keys.toml"))
    with pytest.raises(BadKeys):
        new_key(tmp_path / "keys.toml", "b")
    assert (tmp_path / "keys.toml").read_text() == text


def test_names_are_plain_and_used_once(tmp_path: Path) -> None:
    for name in ("a", "x" * 64):
        new_key(tmp_path / "keys.toml", name)
    for name in ("a", "", "a b", "a]\nadmin = true", "x" * 65):
        with pytest.raises(BadKeys):
            new_key(tmp_path / "keys.toml", name)


def test_callers_have_names(ring: _Ring, letters: Path) -> None:
    seen = []
    for chosen, headers, host in (
        (ring.settings, bearing(ring.admin), "192.0.2.1"),
        (settings(letters), {}, "127.0.0.1"),
        (settings(letters), {"x-forwarded-for": "192.0.2.7"}, "127.0.0.1"),
        (settings(letters, host="0.0.0.0"), {}, "127.0.0.1"),
        (settings(letters), {}, "192.0.2.1"),
    ):
        app = create_app(chosen)

        async def tell(scope: Any, receive: Any, send: Any) -> None:
            seen.append((scope["state"]["caller"].id, scope["state"]["caller"].admin))

        app.mount("/v1/told", tell)
        with pytest.raises(Exception):  # noqa: B017, PT011 - it answers nothing
            TestClient(app, client=(host, 1)).get("/v1/told/", headers=headers)
    assert seen == [
        ("admin", True),
        ("address:127.0.0.1", True),
        ("address:127.0.0.1", False),  # behind a proxy nobody knows of
        ("address:127.0.0.1", False),
        ("address:192.0.2.1", False),
    ]


def test_where_there_are_keys_nobody_is_an_administrator_by_address(ring: _Ring) -> None:
    """Nor where none is asked for."""
    seen = list[bool]()

    async def tell(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["state"]["caller"].admin)

    scope = {"type": "http", "path": "/docs", "headers": [], "client": ("127.0.0.1", 1)}
    for keys in (None, Keys(ring.file)):
        told_by(Callers(tell, keys, local=True), scope | {})
    assert seen == [True, False]


def test_a_key_is_added_to_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    """Where a volume or a secret is mounted, the service may know that file by its own name."""
    file, link = tmp_path / "keys.toml", tmp_path / "link.toml"
    link.symlink_to(file.name)
    keys = {name: new_key(link, name) for name in ("first", "second")}
    assert link.is_symlink()
    assert read_keys(file).keys() == keys.keys()
    assert "\n\n\n" not in file.read_text()


def test_addresses_of_one_home_are_one_caller() -> None:
    assert network("2001:db8::1") == network("2001:db8::ffff:2") == "2001:db8::/64"
    assert network("::ffff:192.0.2.1") == network("192.0.2.1") == "192.0.2.1"
    assert network("2001:db8:0:1::1") != network("2001:db8::1")


@pytest.mark.parametrize(
    ("trusted", "caller"),
    [
        ((), "address:127.0.0.1"),
        (("127.0.0.1",), "address:192.0.2.55"),
        (("192.0.2.1",), "address:127.0.0.1"),
    ],
)
def test_only_a_known_proxy_says_whom_it_speaks_for(
    letters: Path, caplog: pytest.LogCaptureFixture, trusted: tuple[str, ...], caller: str
) -> None:
    caplog.set_level("INFO", "evenkeel.request")
    with listening(settings(letters, trusted_proxies=trusted)) as (url, _):
        httpx.get(f"{url}/v1/models", headers={"x-forwarded-for": "192.0.2.55"})
        assert eventually(lambda: bool(caplog.messages))
    assert [json.loads(line)["caller"] for line in caplog.messages if line[0] == "{"] == [caller]


def test_who_makes_a_key_waits_for_another_who_does(tmp_path: Path) -> None:
    """Of two who have read the same file one would lose theirs, by whichever link they know it."""
    path, link = tmp_path / "keys.toml", tmp_path / "mounted" / "link.toml"
    link.parent.mkdir()
    link.symlink_to(path)
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(new_key, link, "late")
        time.sleep(0.2)
        new = not path.exists()
        os.close(held)
        made.result(timeout=30)
    assert new
    assert "late" in read_keys(path)
