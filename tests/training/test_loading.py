"""How threads of PyTorch wait, which is settled before it is loaded."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("said", "spins"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "PASSIVE"}, "0")],
)
def test_threads_that_wait_soon_sleep_unless_the_environment_says_how(
    said: dict[str, str], spins: str
) -> None:
    """As the library that runs them tells when it is loaded."""
    usual = {name: value for name, value in os.environ.items() if "OMP_" not in name}
    told = subprocess.run(
        [sys.executable, "-m", "training", "--help"],
        env=usual | said | {"OMP_DISPLAY_ENV": "VERBOSE"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"GOMP_SPINCOUNT = '{spins}'" in told.stderr
