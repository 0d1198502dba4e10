"""What a measurement leaves of those before it."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from bench.__main__ import keep


@pytest.mark.parametrize("full", [False, True])
def test_a_full_disk_costs_no_results_that_are_there(
    tmp_path: Path, full: bool, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    """Of half a file, every quick run after it would fail, once it had measured a section."""
    file = keep("step", {"rows": {}}, tmp_path, full=full)
    before = json.loads(file.read_text())
    with full_disk(50), pytest.raises(OSError, match="File too large"):
        keep("step", {"rows": {"step": [1] * 100}}, tmp_path, full=full)
    assert json.loads(file.read_text()) == before
