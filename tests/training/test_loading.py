"""How threads of PyTorch wait, which is settled before it is loaded."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from training.loading import spin_briefly


def test_threads_that_wait_soon_sleep() -> None:
    """As the library that runs them tells when it is loaded."""
    usual = {name: value for name, value in os.environ.items() if "OMP_" not in name}
    told = subprocess.run(
        [sys.executable, "-m", "training", "--help"],
        env=usual | {"OMP_DISPLAY_ENV": "VERBOSE"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "GOMP_SPINCOUNT = '1000'" in told.stderr


@pytest.mark.parametrize("said", [{"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "PASSIVE"}])
def test_the_environment_may_say_how_they_wait(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str]
) -> None:
    environment = dict(said)
    monkeypatch.setattr("training.loading.os", SimpleNamespace(environ=environment))
    spin_briefly()
    assert environment == said
