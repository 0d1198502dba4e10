"""The service starts without any of the training side, and says what keeps it from starting."""

import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.app import create_app
from service.settings import SECRETS, Settings
from tests.service.conftest import Command
from tests.service.processes import spawned

_ROOT = Path(__file__).parents[2]
_BLOCKED = [
    *("torch", "onnx", "onnx_ir", "onnxscript", "matplotlib", "tqdm"),
    *("models", "training", "export", "lab"),
]
_REFUSE = f"""
import sys


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {_BLOCKED}:
            raise ImportError(name + " is not part of the service")


sys.meta_path.insert(0, Refuse())
"""


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", _BLOCKED)
def test_the_refusal_refuses(name: str) -> None:
    done = _python(_REFUSE + f"import {name}")
    assert done.returncode == 1
    assert f"{name} is not part of the service" in done.stderr


def test_a_service_without_the_training_side_serves(artifacts: Path) -> None:
    code = f"""
from pathlib import Path
from starlette.testclient import TestClient
import service.__main__
from service.app import create_app
from service.settings import Settings

settings = Settings(artifacts=Path({str(artifacts)!r}), provider="cpu", allow_unproved=True)
with TestClient(create_app(settings), base_url="http://localhost") as client:
    while client.get("/readyz").status_code != 200:
        pass
    print(client.post("/v1/completions", json={{"model": "letters"}}).status_code)
"""
    done = _python(_REFUSE + code)
    assert done.stdout == "200\n", done.stderr


def test_help_lists_every_setting(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command("--help")
    out = capsys.readouterr().out
    for name in Settings.model_fields:
        assert f"EVENKEEL_{name.upper()} " in out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EVENKEEL_PORT", "abc"),
        ("EVENKEEL_PORT", "70000"),
        ("EVENKEEL_SLOTS", "0"),
        ("EVENKEEL_RUNNER", "fast"),
        ("EVENKEEL_STATE_KEY", "short"),
        ("EVENKEEL_STATE_KEY", "random bytes \udcff\udc80\udcfe"),  # as Python has them
        ("EVENKEEL_ALLOW_UNPROVED", "maybe"),
        ("EVENKEEL_ALLOWED_HOSTS", '["keel.example"'),
        ("EVENKEEL_ALLOWED_HOSTS", "keel.example:8000"),
        ("EVENKEEL_TRUSTED_PROXIES", '["10.0.0.9", 7]'),
        ("EVENKEEL_THREADS", "9" * 30),
    ],
)
def test_a_wrong_setting_is_named_and_ends_with_2(name: str, value: str, command: Command) -> None:
    status, _, err = command(**{name: value})
    assert status == 2
    assert f"error: {name} is " in err or f"error: {name}: " in err


def test_every_wrong_setting_is_named_at_once(command: Command) -> None:
    status, _, err = command(EVENKEEL_PORT="high", EVENKEEL_SLOTS="many")
    assert status == 2
    named = [line.split()[1] for line in err.splitlines()]
    assert sorted(named) == ["EVENKEEL_PORT", "EVENKEEL_SLOTS"]


def test_a_setting_that_is_misspelt_is_told_in_the_log(
    command: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    misspelt = {"EVENKEEL_ALLOWED_HOST": "keel.example", "EVENKEEL_SLOT": "9"}
    command(EVENKEEL_ARTIFACTS=str(tmp_path), **misspelt)
    told = [record for record in caplog.records if "no setting" in record.message]
    assert {(record.name, record.levelname) for record in told} == {("service", "WARNING")}
    assert [record.message.split()[0] for record in told] == list(misspelt)


def test_a_secret_that_is_misspelt_is_told_in_the_log(
    command: Command,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without it state tokens would last until the service restarts, and nobody would know why."""
    monkeypatch.setitem(Settings.model_config, "secrets_dir", tmp_path)
    (tmp_path / "evenkeel_state_keys").write_text("a secret of many letters")
    (tmp_path / "of_somebody_else").touch()
    with caplog.at_level("WARNING", "service"):
        command(EVENKEEL_ARTIFACTS=str(tmp_path))
    told = "EVENKEEL_STATE_KEYS is no setting; EVENKEEL_STATE_KEY is one"
    assert [line for line in caplog.messages if "is no setting" in line] == [told]


def test_a_setting_with_nothing_after_it_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a line of a .env file is that nobody has filled in."""
    names = [f"EVENKEEL_{name.upper()}" for name in Settings.model_fields]
    for name in names:
        monkeypatch.delenv(name, raising=False)
    without = Settings()
    for name in names:
        monkeypatch.setenv(name, "")
    assert Settings() == without


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EVENKEEL_STATE_KEY", "my secret"),
        ("EVENKEEL_STATE_KEY_FALLBACKS", "my secret"),
        ("EVENKEEL_STATE_KEY_FALLBACKS", '["my secret", 7]'),
    ],
)
def test_a_wrong_key_is_not_printed(name: str, value: str, command: Command) -> None:
    status, out, err = command(**{name: value})
    assert status == 2
    assert "my secret" not in out + err


@pytest.mark.parametrize(
    ("written", "named"),
    [(b"my secret", ["EVENKEEL_STATE_KEY"]), (b"my secret \xff", [str(SECRETS), "state_key"])],
)
def test_a_wrong_key_of_a_file_is_not_printed(
    written: bytes,
    named: list[str],
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(Settings.model_config, "secrets_dir", tmp_path)
    (tmp_path / "evenkeel_state_key").write_bytes(written)
    status, out, err = command()
    assert status == 2
    assert all(told in err for told in named)
    assert "my secret" not in out + err


@pytest.mark.parametrize("closed", [True, False])
def test_secrets_are_looked_for_where_docker_mounts_them(closed: bool) -> None:
    """A folder that is for another process of the container is no reason not to start."""
    told = _python(
        f"""
import os

os.access = lambda path, mode: str(path) == "/run/secrets" and not {closed}
from service.settings import Settings

print(Settings.model_config["secrets_dir"])
"""
    )
    assert told.stdout == ("None\n" if closed else "/run/secrets\n")


def test_a_service_without_artifacts_ends_with_2(command: Command, tmp_path: Path) -> None:
    status, _, err = command(EVENKEEL_ARTIFACTS=str(tmp_path))
    assert status == 2
    assert f"{tmp_path} holds no artifact" in err


def test_a_place_that_is_taken_ends_with_2(artifacts: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with spawned(artifacts, port=port) as (process, _):
            _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"EVENKEEL_HOST '127.0.0.1' and EVENKEEL_PORT {port}" in err
    assert "Traceback" not in err


def test_a_service_with_too_few_files_says_so_and_ends_with_2(
    command: Command, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"getrlimit": lambda _: (64, 64), "setrlimit": lambda *_: None}
    monkeypatch.setattr("service.http.gate.resource", SimpleNamespace(**vars(resource) | few))
    monkeypatch.setattr("service.__main__.create_alone", create_app)  # other tests run here too
    status, _, told = command(EVENKEEL_ARTIFACTS=str(artifacts), EVENKEEL_PORT="0")
    assert status == 2
    assert "error: 64 files may be open at once; it must be 81 or more" in told


_STUCK = """
import time
from service.__main__ import _leave
from tests.service.engine.scripted import ScriptedRunner, made_engine
made_engine(ScriptedRunner(b""), attest=lambda runner: time.sleep(60)).start()
print("last words")
{before}
_leave(0)
"""


def test_an_engine_that_is_in_a_run_is_not_waited_for_nor_torn_out_of_it() -> None:
    """What the interpreter does at its end would tear it out: here it would say so."""
    done = _python(_STUCK.format(before="import atexit; atexit.register(print, 'torn')"))
    assert (done.returncode, done.stdout) == (0, "last words\n")


_DRAWING = """
import asyncio, time
from service.__main__ import _leave
from service.http.aside import Aside
async def begin():
    drawing = asyncio.ensure_future(Aside().do(lambda: time.sleep(60)))
    await asyncio.sleep(0.2)
    drawing.cancel()
asyncio.run(begin())
_leave(0)
"""


def test_a_drawing_that_nobody_gets_is_not_waited_for() -> None:
    began_s = time.monotonic()
    assert _python(_DRAWING).returncode == 0
    assert time.monotonic() - began_s < 30
