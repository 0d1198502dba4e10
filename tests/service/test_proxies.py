"""The service behind other people's proxies, below a path, as docs/operations.md says to set them
up. Those whose program is not here are skipped."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from bench.peers.launch import free_port
from tests.scale.waiting import wait_for
from tests.service.http.wire import Wire
from tests.service.serving import ask, contents, eventually, listening, settings

_DOCS = Path(__file__).parents[2] / "docs" / "operations.md"
_MODULES = Path("/usr/lib/apache2/modules")
_OF_APACHE = ("mpm_event", "authz_core", "alias", "proxy", "proxy_http")
_LETTERS = {"model": "letters", "max_tokens": 5, "seed": 1}


def _nginx(block: str, port: int, folder: Path) -> list[str]:
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    own = [f"{kind}_temp_path {folder}/{kind};" for kind in kinds]
    lines = ["daemon off; master_process off; error_log stderr; events {}", f"pid {folder}/pid;"]
    lines += ["http { access_log off;", *own, f"server {{ listen 127.0.0.1:{port};", block, "} }"]
    (folder / "nginx.conf").write_text("\n".join(lines))
    return ["nginx", "-e", "stderr", "-c", str(folder / "nginx.conf")]


def _caddy(block: str, port: int, folder: Path) -> list[str]:
    told = block.replace("example.org", f"http://127.0.0.1:{port}", 1)
    (folder / "Caddyfile").write_text(f"{{\nadmin off\ndefault_bind 127.0.0.1\n}}\n{told}")
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


def _apache(block: str, port: int, folder: Path) -> list[str]:
    modules = [f"LoadModule {name}_module {_MODULES}/mod_{name}.so" for name in _OF_APACHE]
    own = [f"PidFile {folder}/pid", f"ErrorLog {folder}/errors", f"Mutex file:{folder} default"]
    lines = [f"ServerRoot {folder}", "ServerName example.org", *own, "User nobody", *modules]
    (folder / "httpd.conf").write_text("\n".join([*lines, f"Listen 127.0.0.1:{port}", block, ""]))
    return ["apache2", "-DFOREGROUND", "-f", str(folder / "httpd.conf")]


_PROXIES: dict[str, Callable[[str, int, Path], list[str]]] = {
    "nginx": _nginx,
    "caddy": _caddy,
    "apache": _apache,
}


@pytest.fixture(scope="module", params=_PROXIES)
def front(
    request: pytest.FixtureRequest, letters: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a service behind a proxy, below a path; the proxy is trusted."""
    name, folder, port = request.param, tmp_path_factory.mktemp(request.param), free_port()
    (block,) = re.findall(rf"```{name}\n(.*?)```", _DOCS.read_text(), re.DOTALL)
    with ExitStack() as stack:
        chosen = settings(letters, trusted_proxies=("127.0.0.1",))
        url, _ = stack.enter_context(listening(chosen))
        behind = block.replace("127.0.0.1:8000", url.removeprefix("http://"))
        assert behind != block
        command = _PROXIES[name](behind, port, folder)
        if shutil.which(command[0]) is None:
            pytest.skip(f"there is no {command[0]}")
        home = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)} | home
        process = subprocess.Popen(command, env=environment)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        front = f"http://127.0.0.1:{port}/evenkeel"
        wait_for(name, lambda: _is_ready(front))
        yield front


def _is_ready(front: str) -> bool:
    try:
        return httpx.get(f"{front}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def _host(front: str) -> str:
    return front.removesuffix("/evenkeel")


def test_the_page_is_where_its_files_are_found(front: str) -> None:
    page = httpx.get(front, follow_redirects=True)
    assert str(page.url) == f"{front}/"
    (script,) = re.findall('<script type="module" src="([^"]*)"', page.text)
    assert httpx.get(page.url.join(script)).status_code == 200


def test_the_page_of_the_host_may_ask_and_another_may_not(front: str) -> None:
    for origin, status in ((_host(front), 200), ("https://evil.example", 403)):
        headers = {"origin": origin}
        answer = httpx.post(f"{front}/v1/completions", json=_LETTERS, headers=headers)
        assert answer.status_code == status


def test_a_stream_is_what_the_service_sends(front: str) -> None:
    body = _LETTERS | {"stream": True}
    headers = {"accept-encoding": "gzip", "x-request-id": "mine"}
    answer = httpx.post(f"{front}/v1/completions", json=body, headers=headers)
    whole = httpx.post(f"{front}/v1/completions", json=_LETTERS).json()
    streamed = "".join(event["choices"][0]["text"] for event in contents(answer.text))
    assert streamed == whole["choices"][0]["text"] != ""
    assert answer.headers["x-request-id"] == "mine"


def test_a_session_comes_through_with_the_code_it_is_closed_with(front: str) -> None:
    url = f"{front.replace('http', 'ws', 1)}/v1/online"
    with connect(url, origin=_host(front), subprotocols=["evenkeel"]) as socket:  # type: ignore
        assert socket.subprotocol == "evenkeel"
        assert "must be a JSON object" in ask(socket, "nonsense")["error"]["message"]  # type: ignore
        socket.close(4000)


def test_the_service_says_that_a_body_is_too_large(front: str) -> None:
    """Of whoever waits for `100 Continue` too, as curl does."""
    body = json.dumps(_LETTERS | {"prompt": "a" * 1_100_000}).encode()
    host = _host(front).removeprefix("http://")
    for expected in ("", "Expect: 100-continue\r\n"):
        head = f"POST /evenkeel/v1/completions HTTP/1.1\r\nHost: {host}\r\n{expected}"
        lines = "Content-Type: application/json\r\nConnection: close\r\n"
        wire = Wire(_host(front))
        wire.send(f"{head}{lines}Content-Length: {len(body)}\r\n\r\n".encode())
        heard = wire.until(b"\r\n\r\n") if expected else b" 100 "
        if b" 100 " in heard:
            with suppress(OSError):  # it need not be taken
                wire.send(body)
        heard += wire.rest()
        assert b" 413 " in heard
        assert b"body_too_large" in heard


def test_nobody_is_an_administrator_through_it(front: str) -> None:
    assert httpx.post(f"{front}/v1/models/none/unload").status_code == 403


def test_callers_are_told_apart(front: str, caplog: pytest.LogCaptureFixture) -> None:
    """By what the proxy says of them, not by what they say."""
    there = httpx.HTTPTransport(local_address="127.0.0.2")
    with caplog.at_level("INFO"), httpx.Client(transport=there) as client:
        said = {"x-forwarded-for": "192.0.2.7"}
        client.post(f"{front}/v1/completions", json=_LETTERS, headers=said)
        assert eventually(lambda: "address:127.0.0.2" in caplog.text)
    assert "192.0.2.7" not in caplog.text
