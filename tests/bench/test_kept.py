"""What a measurement leaves of those before it, and what of it is told before the work."""

import importlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from bench.__main__ import keep

_ABSENT = "bentoml, litserve, nncf, openvino not installed"


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


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("bench.__main__", ["--sections", "memory"]),
        ("bench.gpu", ["--provider", "cpu"]),
        ("bench.gpu_http", ["--providers", "cpu"]),
        ("bench.gpu_step", ["--device", "cpu"]),
        ("bench.gpu_training", ["--device", "cpu"]),
        ("tests.reliability.__main__", ["aborts", "--clients", "1"]),
        ("tests.scale.__main__", ["haproxy", "streamed"]),
    ],
)
def test_a_place_that_cannot_be_written_to_is_told_before_the_work(
    name: str, asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as left:
        importlib.import_module(name).main(["--out", str(tmp_path / "file"), *asked])
    assert left.value.code == 2
    assert f"argument --out: {tmp_path / 'file'}: {tmp_path / 'file'} is no folder" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("name", "asked", "told"),
    [
        ("tests.reliability.__main__", ["chaos", "kill", "thrill"], "no such scenario: thrill"),
        ("tests.scale.__main__", ["haproxy", "streamed", "drowned"], "no such check: drowned"),
        ("tests.scale.__main__", ["ray"], "there is no Ray; `make ray-check` installs it"),
        ("tests.scale.__main__", ["measure"], "there is no Ray; `make ray-check` installs it"),
        ("bench.peers.same_text", ["plain", "plane"], "no such peer: plane"),
        ("bench.__main__", ["--sections", "open"], f"{_ABSENT}: pip install '.[peers]'"),
        ("bench.__main__", ["--all"], f"{_ABSENT}: pip install '.[peers]'"),
    ],
)
def test_what_there_is_none_of_is_told_before_the_work(
    name: str,
    asked: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = importlib.import_module(name)
    monkeypatch.setattr("tests.scale.fleets.RAY", Path("nowhere"))
    monkeypatch.setattr("tests.scale.haproxy.shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr("bench.__main__.find_spec", lambda name: None)
    monkeypatch.setattr("bench.__main__._measure", None)
    with pytest.raises(SystemExit) as left:
        command.main(asked)
    assert left.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {told}\n")
