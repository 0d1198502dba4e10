"""Microseconds per step on a GPU, sampling on the device: `python -m bench.gpu_step`.

The slots runner (`step.onnx` under CUDA graphs) beside the same step in PyTorch, eager and captured
as a CUDA graph, and cuDNN's LSTM of the same size, which has no norm, no read-out and no sampler.
Every step ends with its symbols on the host. A step of each side in turn, so all see the same
clocks. Writes JSON to docs/results, or to `--out`; `--device cpu` rehearses what needs no GPU.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.goal import judge
from bench.rows import percentiles
from bench.step import random_artifact
from export.convert import load_model
from export.golden import Sample
from export.kinds import KINDS
from export.results import command, machine, write_json
from models.generation import Step
from service.artifact import Artifact
from service.engine.runners import SlotRunner
from service.engine.runtime import Runtime

SIZES = ((1, 512), (1, 1024), (3, 400), (1, 2048))  # layers and units
SLOTS = (1, 32)
GOAL = 2.0  # times as fast as PyTorch under CUDA graphs
_WARM_UP = 20


@dataclass(frozen=True, slots=True)
class GpuStepRow:
    """Times in µs over all steps; kernels of one step as CUPTI saw them, None on a CPU."""

    layers: int
    units: int
    slots: int
    side: str
    p50_us: float
    p99_us: float
    kernels: int | None
    steps: int


def measure(artifact: Artifact, slots: int, steps: int, device: str) -> Iterator[GpuStepRow]:
    """All sides for one model at one slot count."""
    config = artifact.manifest.hyperparameters
    size = config["layers"], config["units"]
    kind, model = KINDS[artifact.manifest.kind], load_model(artifact.folder, artifact.manifest)
    sample = kind.sample(model, 1, slots, seed=0)
    step = kind.step(model.eval().to(device), filtered=False)
    sides = {"served": _served(artifact, sample, device)}
    sides["eager"] = _Loop(step, sample, device).eager
    if device == "cuda":
        sides["cuda graph"] = _Loop(step, sample, device).captured()
    sides["nn.LSTM"] = _lstm(*size, slots, device)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(_WARM_UP + steps):
        for name, side in sides.items():
            began = time.perf_counter()
            side()
            if turn >= _WARM_UP:
                times[name].append((time.perf_counter() - began) * 1e6)
    for name, taken in times.items():
        p50, p99 = percentiles(taken, 0.5, 0.99, digits=1)
        kernels = _kernels(sides[name]) if device == "cuda" else None
        yield GpuStepRow(*size, slots, name, p50, p99, kernels, len(taken))


def _served(artifact: Artifact, sample: Sample, device: str) -> Callable[[], object]:
    slots, steps, row = sample.symbols.shape[1], sample.drawn(), sample.rows()
    provider = "cuda" if device == "cuda" else "cpu"
    runner = SlotRunner(artifact, Runtime(provider, "slots", 1, slots))
    for slot in range(slots):
        runner.load(slot, artifact.initial_state())
    return lambda: runner.run(range(slots), steps, row, filtered=False)


class _Loop:
    """A PyTorch step in buffers of a fixed address: state goes back where it came from."""

    def __init__(self, step: Step, sample: Sample, device: str) -> None:
        self._step = step
        slots, steps, row = sample.symbols.shape[1], sample.drawn(), sample.rows()
        inputs = [steps[port.name][0] for port in step.step_ports]
        inputs += [row[port.name] for port in step.row_ports]
        self._state = [tensor.to(device) for tensor in step.initial_state(slots)]
        self._rest = [torch.from_numpy(array).to(device) for array in inputs]

    def _advance(self) -> None:
        results = self._step(*self._state, *self._rest)
        for buffer, after in zip(self._state, results, strict=False):
            buffer.copy_(after)

    @torch.inference_mode()
    def eager(self) -> Tensor:
        """One step, its symbols on the host."""
        self._advance()
        return self._state[0].cpu()

    @torch.no_grad()
    def captured(self) -> Callable[[], Tensor]:
        """The same as a CUDA graph."""
        beside = torch.cuda.Stream()
        with torch.cuda.stream(beside):
            for _ in range(3):  # libraries choose their kernels before the capture
                self._advance()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._advance()

        def step() -> Tensor:
            graph.replay()
            return self._state[0].cpu()

        return step


def _lstm(layers: int, units: int, slots: int, device: str) -> Callable[[], object]:
    lstm = nn.LSTM(units, units, layers).to(device).eval()
    x = torch.zeros(1, slots, units, device=device)
    state = tuple(torch.zeros(layers, slots, units, device=device) for _ in range(2))

    @torch.inference_mode()
    def step() -> Tensor:
        y, _ = lstm(x, state)
        return y[0, :, 0].cpu()

    return step


def _kernels(step: Callable[[], object]) -> int:
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        step()
        torch.cuda.synchronize()
    names = (event.name for event in profile.events())
    return sum(not name.startswith(("Memcpy", "Memset", "cuda")) for name in names)


def main(arguments: list[str] | None = None) -> None:
    """Print a row per side and the goal of each size, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("docs", "results"), help="where to write")
    options = parser.parse_args(arguments)
    torch.backends.cuda.matmul.allow_tf32 = False
    rows: list[GpuStepRow] = []
    with tempfile.TemporaryDirectory() as folder:
        for layers, units in SIZES:
            artifact = random_artifact(Path(folder, f"{layers}x{units}"), units, layers)
            for slots in SLOTS:
                found = {r.side: r for r in measure(artifact, slots, options.steps, options.device)}
                print(*found.values(), sep="\n", flush=True)
                captured = found["cuda graph"].p50_us if "cuda graph" in found else None
                name = f"{layers}x{units}, {slots} slots, against PyTorch under CUDA graphs"
                ours = found["served"].p50_us
                faster = captured and captured / ours
                print(judge(name, "its time over ours", "at least", GOAL, faster).line())
                rows += found.values()
    if options.device == "cuda":
        content: dict[str, Any] = {"command": command("bench.gpu_step", arguments)}
        content |= {"device": torch.cuda.get_device_name(), "machine": machine()}
        content |= {"rows": [asdict(row) for row in rows]}
        write_json(options.out / "gpu-step.json", content)


if __name__ == "__main__":
    main()
