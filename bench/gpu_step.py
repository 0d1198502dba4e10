"""Microseconds per step on a GPU, sampling on the device: `python -m bench.gpu_step`.

The slots runner (`step.onnx` under CUDA graphs) beside the same step in PyTorch, eager and captured
as a CUDA graph, and cuDNN's LSTM of the same size, which has no norm, no read-out and no sampler.
One step at a time, with its symbols on the host before the next begins, and a chunk of them as the
service runs it, whose symbols come together; PyTorch's chunk is one graph. A chunk of each side in
turn, so all see the same clocks. Writes JSON to docs/results, or to `--out`; `--device cpu`
rehearses what needs no GPU.
"""

import argparse
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.goal import judge
from bench.gpu import on_device
from bench.peers.launch import end_in_order
from bench.rows import percentiles
from bench.step import SHIPPED, random_artifact
from bench.target import ARTIFACTS
from export.artifact import load_model
from export.golden import Sample
from export.kinds import KINDS
from export.results import command, machine, results_folder, write_json
from models.generation import Step
from service.artifact import Artifact, load_artifact
from service.engine.runners import SlotRunner
from service.engine.runtime import Runtime

SIZES = ((1, 512), (1, 1024), (3, 400), (1, 2048))  # layers and units
SLOTS = (1, 32)
CHUNKS = (1, 32)  # steps whose symbols come together
GOAL = 2.0  # times as fast as PyTorch under CUDA graphs
_WARM_UP = 20
_SIZE = re.compile(r"(\d+)x(\d+)")


@dataclass(frozen=True, slots=True)
class GpuStepRow:
    """Times of a step in µs over all chunks; kernels of a chunk as CUPTI saw them, None on a
    CPU."""

    model: str
    slots: int
    chunk: int
    side: str
    p50_us: float
    p99_us: float
    kernels: int | None
    steps: int


def measure(
    artifact: Artifact, slots: int, chunk: int, steps: int, device: str
) -> Iterator[GpuStepRow]:
    """All sides for one model, with as many slots and so many steps at a time."""
    kind, model = KINDS[artifact.manifest.kind], load_model(artifact.folder, artifact.manifest)
    sample = kind.sample(model, chunk, slots, seed=0)
    step = kind.step(model.eval().to(device), filtered=False)
    sides = {"served": _served(artifact, sample, device)}
    sides["eager"] = _Loop(step, sample, device).eager
    if device == "cuda":
        sides["cuda graph"] = _Loop(step, sample, device).captured()
    size = _SIZE.fullmatch(artifact.name)
    if size and chunk == 1:  # over several steps it would not wait for what it drew
        sides["nn.LSTM"] = _lstm(int(size[1]), int(size[2]), slots, device)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(_WARM_UP + -(-steps // chunk)):
        for name, side in sides.items():
            began = time.perf_counter()
            side()
            if turn >= _WARM_UP:
                times[name].append((time.perf_counter() - began) * 1e6 / chunk)
    for name, taken in times.items():
        p50, p99 = percentiles(taken, 0.5, 0.99, digits=1)
        kernels = _kernels(sides[name]) if device == "cuda" else None
        yield GpuStepRow(artifact.name, slots, chunk, name, p50, p99, kernels, len(taken) * chunk)


def _served(artifact: Artifact, sample: Sample, device: str) -> Callable[[], object]:
    slots, steps, row = sample.symbols.shape[1], sample.drawn(), sample.rows()
    provider = "cuda" if device == "cuda" else "cpu"
    runner = SlotRunner(artifact, Runtime(provider, "slots", 1, slots))
    for slot in range(slots):
        runner.load(slot, artifact.initial_state())
    return lambda: runner.run(range(slots), steps, row, filtered=False)


class _Loop:
    """PyTorch's steps in buffers of a fixed address: state goes back where it came from."""

    def __init__(self, step: Step, sample: Sample, device: str) -> None:
        self._step = step
        (chunk, slots), steps, row = sample.symbols.shape[:2], sample.drawn(), sample.rows()
        self._state = [tensor.to(device) for tensor in step.initial_state(slots)]
        each = [torch.from_numpy(steps[port.name]).to(device) for port in step.step_ports]
        self._each = [[tensor[t] for tensor in each] for t in range(chunk)]
        self._row = [torch.from_numpy(row[port.name]).to(device) for port in step.row_ports]
        self._symbols = torch.empty_like(each[0])

    def _advance(self) -> None:
        for symbols, inputs in zip(self._symbols, self._each, strict=True):
            results = self._step(*self._state, *inputs, *self._row)
            for buffer, after in zip(self._state, results, strict=False):
                buffer.copy_(after)
            symbols.copy_(self._state[0])

    @torch.inference_mode()
    def eager(self) -> Tensor:
        """A chunk, its symbols on the host."""
        self._advance()
        return self._symbols.cpu()

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
            return self._symbols.cpu()

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
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_step", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=results_folder, default="docs/results", help="where to write")
    options = on_device(parser, arguments)
    torch.backends.cuda.matmul.allow_tf32 = False
    rows: list[GpuStepRow] = []
    with tempfile.TemporaryDirectory() as folder:
        sizes = [random_artifact(Path(folder, f"{n}x{units}"), units, n) for n, units in SIZES]
        shipped = [ARTIFACTS / name for name in SHIPPED if (ARTIFACTS / name).exists()]
        for artifact in (*sizes, *map(load_artifact, shipped)):
            for slots, chunk in product(SLOTS, CHUNKS):
                measured = measure(artifact, slots, chunk, options.steps, options.device)
                found = {row.side: row for row in measured}
                print(*found.values(), sep="\n", flush=True)
                captured = found["cuda graph"].p50_us if "cuda graph" in found else None
                name = f"{artifact.name}, {slots} slots, {chunk} steps, against PyTorch's graph"
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
    end_in_order(main)
