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
from service.engine import runners, stretch
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
    for module in (runners, stretch):
        monkeypatch.setattr(module, "Bundle", lambda *a: Bundle(*a[:2], "cpu"))
    return replace(runtime, provider="cuda")


def _run(runner: SlotRunner, total: int = 3) -> None:
    steps = {"forced": np.full((total, 1), 97), "force": np.ones((total, 1), bool)}
    runner.run([0], steps | {"uniform": np.zeros((total, 1), np.float32)}, {}, filtered=False)


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


@pytest.mark.parametrize("asked", _ASKED)
def test_nobody_waits_on_a_cpu(artifacts: Path, gpu: Runtime, asked: str) -> None:
    artifact, cpu = load_artifact(artifacts / "letters"), replace(gpu, provider="cpu")
    runner = SlotRunner(artifact, cpu)
    with ThreadPoolExecutor(1) as thread, runners._GPU:
        thread.submit(_ASKED[asked], artifact, cpu, runner).result(_LONG_S)


@pytest.mark.parametrize("name", ["letters", "noise"])
def test_each_place_of_a_step_is_captured_as_a_graph_of_its_own(
    artifacts: Path, gpu: Runtime, name: str
) -> None:
    """One replayed for another would read where it should write."""
    runner = SlotRunner(load_artifact(artifacts / name), gpu)
    for filtered in (False, True):
        places = [p for s in runner._stretches for p in s._runs[filtered][1]]
        ids = [p.wait.get_run_config_entry("gpu_graph_id") for p in places]
        assert len(ids) == len(set(ids)) == sum(s.most + 1 for s in runner._stretches)
        assert ids == [p.go_on.get_run_config_entry("gpu_graph_id") for p in places]


@pytest.mark.parametrize("steps", [1, 2, 7, 33])
def test_a_device_is_waited_for_at_the_last_of_steps_that_share_a_copy(
    artifacts: Path, gpu: Runtime, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their outputs are copied then, and no sooner."""
    option = "disable_synchronize_execution_providers"
    runner, done = SlotRunner(load_artifact(artifacts / "letters"), gpu), list[str]()
    run, fetch = ort.InferenceSession.run_with_iobinding, Bundle.fetch

    def noted(session: ort.InferenceSession, binding: Any, options: ort.RunOptions) -> None:
        try:
            done.append({"1": "goes on"}[options.get_run_config_entry(option)])
        except Exception:  # onnxruntime's own, for what was not set
            done.append("waits")
        run(session, binding, options)

    def copied(bundle: Bundle) -> None:
        done.append("copies")
        fetch(bundle)

    monkeypatch.setattr(ort.InferenceSession, "run_with_iobinding", noted)
    monkeypatch.setattr(Bundle, "fetch", copied)
    _run(runner, steps)
    one, more = ["waits", "copies"], ["goes on"] * 31 + ["waits", "copies"]
    assert done == (more + one if steps == 33 else ["goes on"] * (steps - 1) + one)
