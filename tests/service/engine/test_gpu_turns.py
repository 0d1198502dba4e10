"""Models on one GPU take turns: a CUDA graph is captured only while no other thread asks for
anything. The GPU is played by the CPU."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from service.artifact import Artifact, load_artifact
from service.engine import runners
from service.engine.bundle import Bundle
from service.engine.runners import SlotRunner
from service.engine.runtime import Runtime, choose_runtime
from tests.service.serving import settings

_SHORT_S, _LONG_S = 0.1, 60.0


@pytest.fixture
def gpu(artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A GPU that is none."""
    runtime = choose_runtime(settings(artifacts, runner="slots", slots=2, provider="cpu"))
    place: Callable[..., Any] = ort.OrtValue.ortvalue_from_numpy
    open_ = Runtime.session
    monkeypatch.setattr(ort.OrtValue, "ortvalue_from_numpy", lambda array, *_: place(array))
    monkeypatch.setattr(Runtime, "session", lambda _, *which: open_(runtime, *which))
    monkeypatch.setattr(runners, "Bundle", lambda ports, width, _: Bundle(ports, width, "cpu"))
    return replace(runtime, provider="cuda")


def _run(runner: SlotRunner) -> None:
    steps = {"forced": np.full((3, 1), 97), "force": np.ones((3, 1), bool)}
    runner.run([0], steps | {"uniform": np.zeros((3, 1), np.float32)}, {}, filtered=False)


_ASKED: dict[str, Callable[[Artifact, Runtime, SlotRunner], object]] = {
    "made": lambda artifact, runtime, _: SlotRunner(artifact, runtime),
    "loaded": lambda artifact, _, runner: runner.load(0, artifact.initial_state()),
    "read": lambda _, __, runner: runner.read(0),
    "run": lambda _, __, runner: _run(runner),
}


@pytest.mark.parametrize("asked", _ASKED)
def test_whoever_asks_a_gpu_waits_for_its_turn(artifacts: Path, gpu: Runtime, asked: str) -> None:
    artifact = load_artifact(artifacts / "letters")
    runner = SlotRunner(artifact, gpu)
    with ThreadPoolExecutor(1) as thread:
        with runners._GPU:  # as long as another model is at it
            waiting = thread.submit(_ASKED[asked], artifact, gpu, runner)
            with pytest.raises(TimeoutError):
                waiting.result(_SHORT_S)
        waiting.result(_LONG_S)


@pytest.mark.parametrize(("provider", "taken"), [("cuda", True), ("cpu", False)])
def test_a_runner_says_that_its_gpu_is_taken(
    artifacts: Path, gpu: Runtime, provider: Any, taken: bool
) -> None:
    runner = SlotRunner(load_artifact(artifacts / "letters"), replace(gpu, provider=provider))
    assert not runner.taken
    with runners._GPU:
        assert runner.taken == taken


@pytest.mark.parametrize("asked", _ASKED)
def test_nobody_waits_on_a_cpu(artifacts: Path, gpu: Runtime, asked: str) -> None:
    artifact, cpu = load_artifact(artifacts / "letters"), replace(gpu, provider="cpu")
    runner = SlotRunner(artifact, cpu)
    with ThreadPoolExecutor(1) as thread, runners._GPU:
        thread.submit(_ASKED[asked], artifact, cpu, runner).result(_LONG_S)


def test_each_way_between_the_states_is_captured_as_a_graph_of_its_own(
    artifacts: Path, gpu: Runtime
) -> None:
    """One replayed for the other would read where it should write."""
    runner = SlotRunner(load_artifact(artifacts / "letters"), gpu)
    assert len(runner._bindings) == 2
    for _, sides in runner._bindings.values():
        named = [options.get_run_config_entry("gpu_graph_id") for _, options in sides]
        assert named == ["1", "2"]
