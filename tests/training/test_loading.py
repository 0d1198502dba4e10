"""What a training does not load, and how threads of PyTorch wait, which is settled before that."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from training.loading import end_at_ctrl_c, hear_ctrl_c, spin_briefly


def test_a_training_needs_neither_onnxruntime_nor_matplotlib_and_its_threads_soon_sleep() -> None:
    """As the library that runs them tells when it is loaded."""
    code = """if True:
        import sys
        for name in ("onnxruntime", "onnx", "onnx_ir", "onnxscript", "matplotlib"):
            sys.modules[name] = None
        sys.argv = ["training", "--help"]
        import runpy
        runpy.run_module("training", run_name="__main__")
    """
    usual = {name: value for name, value in os.environ.items() if "OMP_" not in name}
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=usual | {"OMP_DISPLAY_ENV": "VERBOSE"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert said.returncode == 0, said.stderr
    assert "--from ARTIFACT" in said.stdout
    assert "GOMP_SPINCOUNT = '1000'" in said.stderr


@pytest.mark.parametrize("said", [{"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "PASSIVE"}])
def test_the_environment_may_say_how_they_wait(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str]
) -> None:
    environment = dict(said)
    monkeypatch.setattr("training.loading.os", SimpleNamespace(environ=environment))
    spin_briefly()
    assert environment == said


@pytest.mark.parametrize(
    ("heard", "loading"),
    [(signal.default_int_handler, signal.SIG_DFL), (signal.SIG_IGN, signal.SIG_IGN)],
    ids=["at a terminal", "in the background"],
)
def test_ctrl_c_is_left_to_whoever_started_a_command(heard: Any, loading: Any) -> None:
    """A shell has what it starts in the background ignore that of its terminal."""
    before = signal.signal(signal.SIGINT, heard)
    try:
        end_at_ctrl_c()
        assert signal.getsignal(signal.SIGINT) is loading
        hear_ctrl_c()
        assert signal.getsignal(signal.SIGINT) is heard
    finally:
        signal.signal(signal.SIGINT, before)
