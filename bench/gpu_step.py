"""Microseconds per step on a GPU, sampling on the device: `python -m bench.gpu_step`.

The slots runner (`step.onnx` under CUDA graphs) beside the same step in PyTorch, eager and captured
as a CUDA graph, and cuDNN's LSTM of the same size, which has no norm, no read-out and no sampler.
Every step ends with its symbols on the host. A step of each side in turn, so all see the same
clocks. Writes JSON to docs/results; `--device cpu` rehearses the code that needs no GPU.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bench.step import random_artifact
from export.convert import load_model, read_artifact
from export.results import machine
from export.text.golden import default_options, initial_state
from models.generation import LanguageStep
from service.artifact import Artifact
from service.engine.runtime import Runtime, SlotRunner
from service.text.completion import Sampling

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
    sides = {"served": _served(artifact, slots, device), "eager": _eager(artifact, slots, device)}
    if device == "cuda":
        sides["cuda graph"] = _captured(artifact, slots)
    sides["nn.LSTM"] = _lstm(config["layers"], config["units"], slots, device)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(_WARM_UP + steps):
        for name, step in sides.items():
            began = time.perf_counter()
            step()
            if turn >= _WARM_UP:
                times[name].append((time.perf_counter() - began) * 1e6)
    for name, taken in times.items():
        p99 = statistics.quantiles(taken, n=100)[-1]
        kernels = _kernels(sides[name]) if device == "cuda" else None
        yield GpuStepRow(
            config["layers"], config["units"], slots, name,
            round(statistics.median(taken), 1), round(p99, 1), kernels, len(taken),
        )  # fmt: skip


def _served(artifact: Artifact, slots: int, device: str) -> Callable[[], object]:
    provider = "cuda" if device == "cuda" else "cpu"
    runner = SlotRunner(artifact, Runtime(provider, "slots", 1, slots))
    everyone = list(range(slots))
    for slot in everyone:
        runner.load(slot, artifact.initial_state())
    row = {name: np.stack([value] * slots) for name, value in Sampling().row().items()}
    inputs = {
        "forced": np.zeros((1, slots), np.int64),
        "force": np.zeros((1, slots), bool),
        "uniform": np.full((1, slots), 0.5, np.float32),
    }
    return lambda: runner.run(everyone, inputs, row, filtered=False)["next"]


class _Loop:
    """A PyTorch step in buffers of a fixed address: state goes back where it came from."""

    def __init__(self, artifact: Artifact, slots: int, device: str) -> None:
        model = load_model(artifact.folder, read_artifact(artifact.folder)).eval().to(device)
        self.step = LanguageStep(model, filtered=False)
        self.state = [s.to(device) for s in initial_state(self.step, slots)]
        self.rest = [
            torch.zeros(slots, dtype=torch.int64, device=device),
            torch.zeros(slots, dtype=torch.bool, device=device),
            torch.full((slots,), 0.5, device=device),
            *(option.to(device) for option in default_options(self.step, slots)),
        ]

    def advance(self) -> None:
        results = self.step(*self.state, *self.rest)
        for buffer, after in zip(self.state, results, strict=False):
            buffer.copy_(after)

    def symbols(self) -> Tensor:
        return self.state[0].cpu()


def _eager(artifact: Artifact, slots: int, device: str) -> Callable[[], object]:
    loop = _Loop(artifact, slots, device)

    @torch.inference_mode()
    def step() -> Tensor:
        loop.advance()
        return loop.symbols()

    return step


@torch.no_grad()
def _captured(artifact: Artifact, slots: int) -> Callable[[], object]:
    loop = _Loop(artifact, slots, "cuda")
    beside = torch.cuda.Stream()
    with torch.cuda.stream(beside):
        for _ in range(3):  # libraries choose their kernels before the capture
            loop.advance()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loop.advance()

    def step() -> Tensor:
        graph.replay()
        return loop.symbols()

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


def main() -> None:
    """Print a row per side with the goal, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()
    rows: list[GpuStepRow] = []
    torch.backends.cuda.matmul.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        for layers, units in SIZES:
            artifact = random_artifact(Path(folder, f"{layers}x{units}"), units, layers)
            for slots in SLOTS:
                found = list(measure(artifact, slots, options.steps, options.device))
                for row in found:
                    ratio = row.p50_us / found[0].p50_us
                    told = f"{'met' if ratio >= GOAL else 'MISSED'} (goal {GOAL})"
                    print(*asdict(row).values(), f"{ratio:.2f} times served", end=" ")
                    print(told if row.side == "cuda graph" else "", flush=True)
                rows += found
    if options.device == "cuda":
        content = {
            "command": "python -m bench.gpu_step",
            "device": torch.cuda.get_device_name(),
            "machine": machine(),
            "rows": [asdict(row) for row in rows],
        }
        path = Path("docs", "results", "gpu-step.json")
        path.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
