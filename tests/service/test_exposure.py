"""What a service in a process of its own lets strangers do: nothing unless told to, whatever they
open; and its log keeps secrets."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from service.http import limits
from service.http.keys import new_key, read_keys
from service.server import _without_query
from tests.service.conftest import Command
from tests.service.processes import ready, spawned
from tests.service.serving import bearing, eventually, listening, settings

_ROOT = Path(__file__).parents[2]


@contextmanager
def _started(artifacts: Path, **chosen: Any) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The URL and process of a service that is ready."""
    with spawned(artifacts, **chosen) as (process, url):
        assert eventually(lambda: ready(url))
        yield url, process


def _ended(process: "subprocess.Popen[str]") -> str:
    """What it has put out, once it was told to stop."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    return out + err


def test_no_secret_is_logged(letters: Path, tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "somebody")
    wrong = "ek-wrong-but-somewhere-else-right"
    state_key = "the state key of all replicas"
    other = "the state key of all until now"
    chosen = {"host": "0.0.0.0", "state_key": state_key, "log_level": "debug"}
    chosen |= {"state_key_fallbacks": other}
    with _started(letters, keys=tmp_path / "keys.toml", **chosen) as (url, process):
        for given in (key, wrong):
            headers = bearing(given)
            httpx.get(f"{url}/v1/models", headers=headers)
            httpx.get(f"{url}/v1/models?api_key={given}")
            httpx.post(f"{url}/v1/completions", headers=headers, content=b"{")
            for address in ("/v1/online", f"/v1/online?api_key={given}"):
                ways = ({"additional_headers": headers}, {"subprotocols": [f"bearer.{given}"]})
                for way in ways:
                    with (
                        suppress(InvalidStatus),
                        connect(url.replace("http", "ws") + address, **way) as online,
                    ):
                        online.send(json.dumps({"model": "letters"}))
                        online.recv()
            with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)) as wire:
                wire.sendall(f"GET / HTTP/1.1\r\nAuthorization: Bearer {given}\r\n\0\r\n".encode())
                wire.recv(1000)
        logged = _ended(process)
    assert "/v1/online" in logged
    assert "somebody" in logged
    hashed = read_keys(tmp_path / "keys.toml")["somebody"].sha256
    for secret in (key, wrong, state_key, other, hashed):
        assert secret not in logged


def test_a_line_of_the_server_has_nothing_of_a_query() -> None:
    """However many marks it has."""
    line = logging.LogRecord("uvicorn.access", logging.INFO, "", 0, "%s %d", None, None)
    line.args = ("/v1/models?api_key=ek-a?b", 200)
    assert _without_query(line)
    assert line.getMessage() == "/v1/models 200"


def test_few_files_leave_room_for_probes(letters: Path) -> None:
    with _started(letters, files=128, host="0.0.0.0", open=1) as (url, process):
        port = urlsplit(url).port or 0
        wires = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        for probe in ("/livez", "/readyz"):
            assert httpx.get(url + probe, timeout=20).status_code == 200
        for wire in wires:
            wire.close()
        assert "Too many open files" not in _ended(process)


def test_a_half_sent_body_does_not_hold_the_drain(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_LAST_BYTES_S", limits._LAST_BYTES_S / 10)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
    with ExitStack() as stack:
        with listening(settings(artifacts)) as (url, _):
            place = "127.0.0.1", urlsplit(url).port or 0
            wire = stack.enter_context(socket.create_connection(place))
            wire.sendall(head)
            httpx.get(f"{url}/livez")  # by now the other one has been read
            began_s = time.monotonic()
        assert time.monotonic() - began_s < 10  # the drain may take 20 s
        assert wire.recv(1000).startswith(b"HTTP/1.1 503 ")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "somewhere.example"])
def test_beyond_the_loopback_interface_it_wants_keys_or_a_word(command: Command, host: str) -> None:
    status, _, told = command(EVENKEEL_HOST=host)
    assert status == 2
    assert "EVENKEEL_KEYS" in told
    assert "EVENKEEL_OPEN=1" in told


def test_keys_that_cannot_be_read_are_an_error(command: Command, artifacts: Path) -> None:
    keys = "/nowhere/keys.toml"
    status, _, told = command(EVENKEEL_ARTIFACTS=str(artifacts), EVENKEEL_KEYS=keys)
    assert status == 2
    assert f"error: EVENKEEL_KEYS: {keys}" in told


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("x" * 16, "fewer than 8 different characters"),
        ("abababababababab", "fewer than 8 different characters"),
        ("too short a key", "fewer than 16 characters"),
    ],
)
def test_a_state_key_that_might_be_guessed_is_refused(command: Command, key: str, why: str) -> None:
    status, _, told = command(EVENKEEL_STATE_KEY=key)
    assert status == 2
    assert told.startswith(f"error: EVENKEEL_STATE_KEY: it has {why}; ")
    assert key not in told


@pytest.mark.parametrize(
    "place", [".", "missing/keys.toml", "file/keys.toml", "loop", "loop/keys.toml"]
)
def test_a_place_where_no_key_can_be_kept_is_told_in_a_line(
    command: Command, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    status, out, told = command("keys", "new", "me", "--file", str(tmp_path / place))
    assert (status, out) == (2, "")
    assert told.startswith(f"error: {tmp_path / place}: ")
    assert told.count("\n") == 1


@pytest.mark.parametrize("limit", ["concurrency", "bytes-per-minute"])
def test_a_limit_that_is_none_is_told_of_the_file_that_was_meant(
    command: Command, tmp_path: Path, limit: str
) -> None:
    file = tmp_path / "keys.toml"
    status, out, told = command("keys", "new", "me", "--file", str(file), f"--{limit}", "0")
    assert (status, out, file.exists()) == (2, "", False)
    rule = "Input should be greater than or equal to 1"
    assert told == f"error: {file}: me.{limit.replace('-', '_')}: {rule}\n"


def test_a_key_is_made_and_told_once(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    new = ("keys", "new", "me", "--file", str(file))
    status, key, _ = command(*new, "--admin", "--concurrency", "3", "--bytes-per-minute", "5000")
    assert status == 0
    assert key.startswith("ek-")
    assert key.strip() not in file.read_text()
    entry = read_keys(file)["me"]
    assert (entry.admin, entry.concurrency, entry.bytes_per_minute) == (True, 3, 5000)
    status, _, told = command(*new)
    assert status == 2
    assert "has a key me already" in told


_OTHER = f'[other]\nsha256 = "{"0" * 64}"\n'


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A file with a key."""
    (tmp_path / "keys.toml").write_text(_OTHER, "utf-8")
    return tmp_path / "keys.toml"


def test_a_key_that_nobody_can_be_shown_is_not_kept(
    command: Command, monkeypatch: pytest.MonkeyPatch, keys: Path
) -> None:
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it where it was closed
    status, _, told = command("keys", "new", "me", "--file", str(keys))
    assert (status, told) == (2, "error: standard output is closed\n")
    assert keys.read_text("utf-8") == _OTHER


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_key_that_cannot_be_shown_is_not_kept(keys: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "service", "keys", "new", "me", "--file", keys],
            cwd=_ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
            env=os.environ | {"PYTHONUNBUFFERED": ""},  # what was not written is kept, to its end
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output: No space left")
    assert done.stderr.count("\n") == 1
    assert keys.read_text("utf-8") == _OTHER


def test_keys_are_kept_where_the_help_says_unless_told(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, _ = command("keys", "new", "me")
    assert status == 0
    assert read_keys(tmp_path / "keys.toml").keys() == {"me"}
