"""The service starts without any of the training side, and says what keeps it from starting."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from service.__main__ import main
from service.settings import Settings
from tests.service.serving import eventually

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


def _start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "service", *arguments],
        cwd=_ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_service_is_imported_without_the_training_side() -> None:
    done = _python(_REFUSE + "import service.app, service.__main__")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", _BLOCKED)
def test_the_refusal_refuses(name: str) -> None:
    done = _python(_REFUSE + f"import {name}")
    assert done.returncode == 1
    assert f"{name} is not part of the service" in done.stderr


def test_a_service_without_the_training_side_serves(artifacts: Path) -> None:
    code = f"""
from pathlib import Path
from starlette.testclient import TestClient
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


def test_help_lists_every_setting() -> None:
    out, _ = _start("--help").communicate(timeout=60)
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
def test_a_wrong_setting_is_named_and_ends_with_2(
    name: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["service"])
    monkeypatch.setenv(name, value)
    assert main() == 2
    err = capsys.readouterr().err
    assert f"error: {name} is " in err or f"error: {name}: " in err


def test_a_setting_that_is_misspelt_is_told_in_the_log(tmp_path: Path) -> None:
    process = _start(EVENKEEL_ARTIFACTS=str(tmp_path), EVENKEEL_ALLOWED_HOST="keel.example")
    _, err = process.communicate(timeout=60)  # there is nothing to serve
    assert process.returncode == 2
    assert "WARNING service: EVENKEEL_ALLOWED_HOST is no setting" in err


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
        ("STATE_KEY", "my secret"),
        ("STATE_KEY_FALLBACKS", "my secret"),
        ("STATE_KEY_FALLBACKS", '["my secret", 7]'),
    ],
)
def test_a_wrong_key_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["service"])
    monkeypatch.setenv(f"EVENKEEL_{name}", value)
    assert main() == 2
    told = capsys.readouterr()
    assert "my secret" not in told.out + told.err


def test_a_service_without_artifacts_ends_with_2_and_no_traceback(tmp_path: Path) -> None:
    process = _start(EVENKEEL_ARTIFACTS=str(tmp_path), EVENKEEL_PORT="0")
    out, err = process.communicate(timeout=60)
    assert f"{tmp_path} holds no artifact" in err
    assert "Traceback" not in out + err
    assert process.returncode == 2


def test_a_place_that_is_taken_ends_with_2(artifacts: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        process = _start(
            EVENKEEL_ARTIFACTS=str(artifacts), EVENKEEL_PORT=port, EVENKEEL_ALLOW_UNPROVED="1"
        )
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"EVENKEEL_HOST '127.0.0.1' and EVENKEEL_PORT {port}" in err
    assert "Traceback" not in err


def test_a_service_with_too_few_files_says_so_and_ends_with_2(artifacts: Path) -> None:
    code = (
        "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); "
        "sys.argv = ['service']; runpy.run_module('service', run_name='__main__')"
    )
    chosen = {"EVENKEEL_ARTIFACTS": str(artifacts), "EVENKEEL_PORT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=_ROOT, env=os.environ | chosen, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "error: 64 files may be open at once; it must be 81 or more" in done.stderr


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


def test_a_service_serves_until_it_is_told_to_stop(artifacts: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = _start(
        EVENKEEL_ARTIFACTS=str(artifacts),
        EVENKEEL_PORT=str(port),
        EVENKEEL_PROVIDER="cpu",
        EVENKEEL_ALLOW_UNPROVED="1",
    )

    def ready() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    try:
        assert eventually(ready)
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in out + err
    assert "GET /readyz" not in out + err  # probes are left out of the log, and nobody else tells
