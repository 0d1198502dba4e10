"""Graphs of several commits are compared as they were committed."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime as ort
import pytest
import torch

from bench import floor, revisions
from bench.revisions import extract, main, sides
from bench.step import StepRow, compare
from export.parity.served import session_options

_GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b.invalid", "-c", "commit.gpgsign=false"]


@pytest.fixture
def history(
    made_once: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A repository whose first commit has a model of text, and its second one of ink there."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    subprocess.run([*_GIT, "init", "-q"], check=True)
    for name in ("letters", "scrawl"):
        shutil.rmtree(folder / "model", ignore_errors=True)
        shutil.copytree(made_once(name), folder / "model")
        subprocess.run([*_GIT, "add", "."], check=True)
        subprocess.run([*_GIT, "commit", "-qm", name], check=True)
    return folder


def test_each_revision_is_as_it_was_committed(history: Path, tmp_path: Path) -> None:
    (history / "model" / "manifest.json").write_text("{}")  # not committed
    places = {r: extract("model", r, tmp_path / str(n)) for n, r in enumerate(("HEAD~1", "HEAD"))}
    kinds = [json.loads((p / "manifest.json").read_text())["kind"] for p in places.values()]
    assert kinds == ["language", "handwriting"]
    found = sides(places, threads=1)
    assert list(found) == ["HEAD~1", "served", "floor"]
    notes = [found[name].note for name in ("HEAD~1", "served")]
    assert all(note.endswith("nodes a step") for note in notes)
    assert notes[0] != notes[1]


def test_the_command_has_a_line_for_each_and_the_floor(
    history: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.revisions.thread_counts", lambda: [1])
    monkeypatch.setattr("bench.step.SETTLE_S", 0.0)
    steps = list[int]()

    def noted(model: str, threads: int, sides: Any, count: int, rounds: int) -> list[StepRow]:
        steps.append(count)
        return compare(model, threads, sides, count, rounds)

    monkeypatch.setattr(revisions, "compare", noted)
    main(["model", "HEAD~1", "HEAD", "--rounds", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[3] for line in lines] == ["HEAD~1", "served", "floor"]
    assert steps == [6 * 32]  # of which each time is one


def test_the_floor_is_read_with_as_many_threads_as_the_graphs_have(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, read = {"HEAD": history / "model"}, []
    monkeypatch.setattr(floor, "_READERS", {"counted": lambda buffer: read.append(buffer.nbytes)})
    asked = list[dict[str, int]]()

    def options(**given: int) -> ort.SessionOptions:
        asked.append(given)
        return session_options(threads=1)

    monkeypatch.setattr(revisions, "session_options", options)
    before = torch.get_num_threads()
    try:
        for threads in (2, 1):
            found = sides(places, threads)
            assert asked.pop() == {"threads": threads}
            read.clear()
            found["floor"].run()
            assert torch.get_num_threads() == threads
            assert len(read) == 6 * 32  # chunks of steps, as the graphs have them
    finally:
        torch.set_num_threads(before)
