"""What a run leaves out, and who makes what it wants for that, is told once a reason."""

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_TESTS = """
import pytest

@pytest.mark.parametrize("number", range(3))
@pytest.mark.skipif(True, reason="no pen; make pen does that")
def test_of_a_pen(number): pass

def test_of_ink(): pytest.skip("no ink")
"""


def test_each_reason_for_skipping_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "test_pens.py").write_text(_TESTS)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n")
    run = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        [*run, "--rootdir", str(tmp_path), "-c", "/dev/null"],
        cwd=_ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[1:3] == [
        "3 tests: Skipped: no pen; make pen does that", "1 tests: Skipped: no ink",
    ], done.stdout  # fmt: skip
