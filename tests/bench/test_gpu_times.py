"""What is timed on a GPU: each time is of what its row says, and of nothing that went before."""

import argparse
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from bench import gpu_step, gpu_training, step
from export.artifact import load_model
from export.kinds import KINDS
from export.results import machine
from service.artifact import Artifact, load_artifact

_TIMED = 50


def _passes(now_s: list[float], unit_s: float, untimed: int) -> Callable[[], object]:
    """What takes very long for the first times, and then 1 to 50 units in some order."""
    units = random.Random(0).sample(range(1, _TIMED + 1), _TIMED)
    left = iter([1000.0 - n for n in range(untimed)] + [unit_s * n for n in units])

    def run() -> None:
        now_s[0] += next(left)

    return run


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_steps_of_every_size_are_timed_and_pytorchs_time_is_over_ours(
    device: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a CPU needs is no result of a GPU."""
    sizes, weights = list[tuple[str, int, int]](), list[torch.Tensor]()

    def written(folder: Path, name: str, model: Any, facts: object) -> None:
        sizes.append((name, model.config.layers, model.config.units))
        weights.append(model.readout.weight)

    def measured(
        artifact: Artifact, slots: int, chunk: int, steps: int, device: str
    ) -> Iterator[gpu_step.GpuStepRow]:
        for side, us in ("served", 10.0), ("eager", 90.0), ("cuda graph", 25.0):
            yield gpu_step.GpuStepRow(artifact.name, slots, chunk, side, us, 99.0, None, steps)

    monkeypatch.setattr(step, "write_artifact", written)
    monkeypatch.setattr(step, "load_artifact", lambda folder: SimpleNamespace(name=folder.name))
    monkeypatch.setattr(gpu_step, "SIZES", ((1, 16), (2, 8)))
    monkeypatch.setattr(gpu_step, "SHIPPED", ("shown", "not made"))
    monkeypatch.setattr(gpu_step, "ARTIFACTS", tmp_path / "made")
    monkeypatch.setattr(gpu_step, "load_artifact", lambda folder: SimpleNamespace(name=folder.name))
    (tmp_path / "made" / "shown").mkdir(parents=True)
    monkeypatch.setattr(gpu_step, "measure", measured)
    monkeypatch.setattr(gpu_step, "on_device", argparse.ArgumentParser.parse_args)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "the one there is")
    gpu_step.main(["--device", device, "--out", str(tmp_path / "out")])
    assert sizes == [("1x16", 1, 16), ("2x8", 2, 8)]
    results = [file.name for file in tmp_path.glob("out/*")]
    assert results == ["gpu-step.json"] * (device == "cuda")
    if device == "cuda":
        told = json.loads((tmp_path / "out" / "gpu-step.json").read_text("utf-8"))
        assert (told["device"], told["machine"]) == ("the one there is", machine())
        assert [row["side"] for row in told["rows"]] == ["served", "eager", "cuda graph"] * 12
    met = [line for line in capsys.readouterr().out.splitlines() if line.startswith("met")]
    assert len(met) == 12
    assert all(": 2.5 times, at least 2 (its time over ours)" in line for line in met)
    step.random_artifact(tmp_path / "again", 16)
    assert torch.equal(weights[0], weights[2])


def test_the_time_of_a_step_is_that_of_its_chunk_over_its_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, chunk = [0.0], 4
    served, eager = (_passes(now_s, s * chunk, gpu_step._WARM_UP) for s in (1e-6, 1e-5))
    kind = SimpleNamespace(sample=lambda *_, **__: None, step=lambda *_, **__: None)
    monkeypatch.setattr(gpu_step, "KINDS", {"k": kind})
    monkeypatch.setattr(gpu_step, "load_model", lambda *_: nn.Identity())
    monkeypatch.setattr(gpu_step, "_served", lambda *_: served)
    monkeypatch.setattr(gpu_step, "_Loop", lambda *_: SimpleNamespace(eager=eager))
    monkeypatch.setattr(gpu_step, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    artifact: Any = SimpleNamespace(name="m", folder=None, manifest=SimpleNamespace(kind="k"))
    rows = gpu_step.measure(artifact, 2, chunk, _TIMED * chunk - 1, "cpu")
    found = [(r.side, r.p50_us, r.p99_us, r.slots, r.chunk, r.steps) for r in rows]
    assert found == [("served", 25, 50, 2, 4, 200), ("eager", 250, 500, 2, 4, 200)]


def test_pytorch_writes_chunk_after_chunk_what_the_model_does(
    made_once: Callable[[str], Path],
) -> None:
    artifact = load_artifact(made_once("letters"))
    kind, model = KINDS[artifact.manifest.kind], load_model(artifact.folder, artifact.manifest)
    sample = kind.sample(model, 6, 2, seed=0)
    loop = gpu_step._Loop(kind.step(model.eval(), filtered=False), sample, "cpu")
    first = loop.eager().clone()
    assert torch.equal(first, sample.symbols)
    assert not torch.equal(loop.eager(), first)  # it goes on from there


def test_updates_are_timed_after_as_many_that_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, asked, changed, begun = [0.0], list[bool](), list[list[str]](), 0

    class Trainer:
        def __init__(self, *_: object) -> None:
            self.task = SimpleNamespace(model=nn.Identity())
            self.weights = SimpleNamespace(parameters={})
            self.progress = SimpleNamespace(update=0)
            self._passes = _passes(now_s, 1e-3, _TIMED)

        def _update(self) -> torch.Tensor:
            nonlocal begun
            begun += self.progress.update == 0
            self.progress.update += 1
            self._passes()
            return torch.zeros(())

    def gradients_of(task: object, parameters: object, *, alone: bool) -> None:
        asked.append(alone)

    recipe = SimpleNamespace(kind="k", training=None, batch=SimpleNamespace(rows=4))
    task = SimpleNamespace(task=lambda *_: (None, None))
    monkeypatch.setattr(
        gpu_training, "read_recipe", lambda _, changes: changed.append(changes) or recipe
    )
    monkeypatch.setattr(gpu_training, "KINDS", {"k": task})
    monkeypatch.setattr(gpu_training, "Trainer", Trainer)
    monkeypatch.setattr(gpu_training, "gradients_of", gradients_of)
    monkeypatch.setattr(gpu_training, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    rows = list(gpu_training.measure("a", "b", _TIMED, "cpu"))
    assert [(r.side, r.rows, r.p50_ms, r.p90_ms, r.first_ms, r.updates) for r in rows] == [
        (side, 4, 25, 45, 1e6, _TIMED) for side in ("launched", "graph")
    ]
    assert asked == [False, True]  # whether a graph may be captured
    assert begun == 4  # both sides begin their batches anew
    list(gpu_training.measure("a", "b", _TIMED, "cpu", 7))
    own = ["batch.growing=false"]  # with as many rows as the recipe has, or those it is told
    assert changed == [own, [*own, "batch.rows=7"]]
