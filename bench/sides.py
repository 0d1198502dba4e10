"""The sides `bench.step` compares: the served runner, and the same steps of the same weights by
other means.

A `Task` is what every side has to write. A side is built from it, its inputs laid out beforehand,
and returns what it wrote, `(T, ...)` for T steps. Kinds of model differ in their ports alone, so
one builder serves all.
"""

import importlib.util
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from bench import floor
from contract.golden import Arrays
from export.artifact import load_model
from export.kinds import KINDS
from service.artifact import Artifact
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from service.settings import Settings

CHUNK_STEPS: int = Settings.model_fields["chunk_steps"].default
STEPS = 200
# Numbers feed back, so rounding grows along a line of ink; a pixel is a quarter of its unit.
_SAME = 1e-2
Write = Callable[[], np.ndarray]
Step = Callable[..., tuple[Tensor, ...]]
Check = Literal["same", "length", "nothing"]


@dataclass(frozen=True, slots=True)
class Task:
    """T steps of a model from its beginning, alone in its batch: inputs `columns (T, 1, ...)`,
    nothing forced, and row options `row (1, ...)`, by port.

    Sides agree on a step where what they `write` is within `tolerance`.
    """

    artifact: Artifact
    columns: Arrays
    row: Arrays
    writes: str
    tolerance: float

    @property
    def steps(self) -> int:
        """T."""
        return len(self.columns["force"])


def task_of(artifact: Artifact, steps: int = STEPS) -> Task:
    """What a sample of the model draws with; its first output is what it writes."""
    manifest = artifact.manifest
    model = load_model(artifact.folder, manifest)
    sample = KINDS[manifest.kind].sample(model, steps, 1, seed=1)
    writes = manifest.ports.output[0]
    tolerance = _SAME if writes.dtype == "float32" else 0.0
    return Task(artifact, sample.drawn(), sample.rows(), writes.name, tolerance)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the things compared; `note` says what is particular about it.

    `check` says what has to hold of what it writes: that it is what `served` writes, that it has as
    many steps (a variant of the model may write something else), or nothing: it writes nothing.
    """

    run: Callable[[], Any]
    note: str = ""
    check: Check = "same"


def served(task: Task, threads: int) -> Side:
    """This project's runner, in chunks of 32 steps."""
    runner = ScanRunner(task.artifact, Runtime("cpu", "scan", threads, slots=1))
    chunks = [
        {name: column[first : first + CHUNK_STEPS] for name, column in task.columns.items()}
        for first in range(0, task.steps, CHUNK_STEPS)
    ]

    def write() -> np.ndarray:
        runner.load(0, task.artifact.initial_state())
        parts = [runner.run([0], chunk, task.row, filtered=False)[task.writes] for chunk in chunks]
        return np.concatenate(parts)[:, 0]

    return Side(write, f"chunks of {CHUNK_STEPS} steps")


def loop(task: Task, threads: int) -> Side:
    """A Python loop over the graph of one step: `session.run`, its state fed back."""
    manifest = task.artifact.manifest
    runtime = Runtime("cpu", "slots", threads, slots=1)
    session = runtime.session(task.artifact, manifest.graphs.step.plain)
    taken = {i.name for i in session.get_inputs()}
    row = {name: value for name, value in task.row.items() if name in taken}
    feeds = [row | {name: c[t] for name, c in task.columns.items()} for t in range(task.steps)]
    carried = [p.name for p in manifest.ports.state]
    wanted = [*(f"{name}_after" for name in carried), task.writes]

    def write() -> np.ndarray:
        state = {n: value[None] for n, value in task.artifact.initial_state().items()}
        written = []
        for feed in feeds:
            *after, out = session.run(wanted, state | feed)
            state = dict(zip(carried, after, strict=True))
            written.append(out)
        return np.concatenate(written)

    return Side(write, "onnxruntime")


def eager(task: Task, threads: int) -> Side:
    """PyTorch as it is."""
    return Side(torch_loop(task, lambda step, example: step))


def compiled(task: Task, threads: int) -> Side:
    """`torch.compile` of the step; it compiles in the first run, which is not timed."""
    torch.compiler.reset()

    def prepare(step: nn.Module, example: tuple[Tensor, ...]) -> Step:
        compiled_step: Step = torch.compile(step, fullgraph=True, dynamic=False)
        return compiled_step

    return Side(torch_loop(task, prepare), "default mode, fullgraph, dynamic=False")


def torchscript(task: Task, threads: int) -> Side:
    """The step traced and frozen."""

    def prepare(step: nn.Module, example: tuple[Tensor, ...]) -> Step:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", torch.jit.TracerWarning)
            frozen: Step = torch.jit.freeze(torch.jit.trace(step, example))
        return frozen

    return Side(torch_loop(task, prepare), "traced and frozen")


def openvino(task: Task, threads: int) -> Side:
    """OpenVINO as it is."""
    write = over_openvino(task, threads, lambda model: model)
    return Side(write, "LATENCY hint, float32, batch 1, sampler in the graph")


def over_openvino(task: Task, threads: int, prepare: Callable[[Any], Any]) -> Write:
    """The graph of one step as it is prepared, compiled for batch 1 by OpenVINO, in a Python loop.

    Two requests in turn: what one puts out as its state is, in place, the state the other takes.
    """
    requests = _openvino_requests(task, threads, prepare)
    carried = [p.name for p in task.artifact.manifest.ports.state]
    for this, other in (requests, requests[::-1]):
        for name in carried:
            other.set_tensor(name, this.get_tensor(f"{name}_after"))
    feeds = [
        [(request.get_tensor(name).data, column) for name, column in task.columns.items()]
        for request in requests
    ]
    first = {name: requests[0].get_tensor(name).data for name in carried}
    outputs = [request.get_tensor(task.writes).data for request in requests]

    def write() -> np.ndarray:
        for name, value in task.artifact.initial_state().items():
            first[name][0] = value
        written = np.empty((task.steps, *outputs[0].shape[1:]), outputs[0].dtype)
        turns = cycle(zip(requests, feeds, outputs, strict=True))
        for t, (request, feed, output) in zip(range(task.steps), turns, strict=False):
            for view, column in feed:
                view[:] = column[t]
            request.start_async()
            request.wait()
            written[t] = output[0]
        return written

    return write


def _openvino_requests(task: Task, threads: int, prepare: Callable[[Any], Any]) -> list[Any]:
    """Two of the same program, the row's options already in them."""
    import openvino as ov

    manifest = task.artifact.manifest
    core = ov.Core()
    # Where the processor can, OpenVINO would round to bfloat16 and write something else.
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
    }
    model = prepare(core.read_model(task.artifact.folder / manifest.graphs.step.plain))
    ports = {p.name: p for p in (*manifest.ports.state, *manifest.ports.step, *manifest.ports.row)}
    names = [i.get_any_name() for i in model.inputs]
    model.reshape({name: [1, *ports[name].shape] for name in names})
    program = core.compile_model(model, "CPU", settings)
    requests = [program.create_infer_request() for _ in range(2)]
    for request in requests:
        for name, value in task.row.items():
            if name in names:
                request.get_tensor(name).data[:] = value
    return requests


def weights_read(task: Task, threads: int) -> Side:
    """The weights of a step read once, as often as there are steps (`bench.floor`)."""
    model = load_model(task.artifact.folder, task.artifact.manifest)
    size_bytes = floor.weight_bytes(model)
    reader, run = floor.reads(size_bytes, task.steps)
    return Side(run, f"{size_bytes / 1e6:.2f} MB of weights, torch.{reader}", "nothing")


BUILDERS: dict[str, Callable[[Task, int], Side]] = {
    "served": served,
    "eager": eager,
    "compile": compiled,
    "torchscript": torchscript,
    "loop": loop,
    "openvino": openvino,
    "floor": weights_read,
}


_NEEDED = {"openvino": ("openvino",), "openvino-int8": ("openvino", "nncf")}


def absent(sides: Iterable[str]) -> dict[str, str]:
    """Which of these sides cannot be measured here, each with the reason."""
    missing = {
        side: [name for name in _NEEDED.get(side, ()) if importlib.util.find_spec(name) is None]
        for side in sides
    }
    return {
        side: f"no {side} column: not installed: {', '.join(names)} (role `peers`)"
        for side, names in missing.items()
        if names
    }


def torch_loop(task: Task, prepare: Callable[[nn.Module, tuple[Tensor, ...]], Step]) -> Write:
    """The module of one step as it is prepared, in a Python loop."""
    manifest = task.artifact.manifest
    model = load_model(task.artifact.folder, manifest).eval()
    step = KINDS[manifest.kind].step(model, filtered=False).eval()
    columns = [torch.from_numpy(task.columns[p.name]) for p in step.step_ports]
    row = [torch.from_numpy(task.row[p.name]) for p in step.row_ports]
    inputs = [(*values, *row) for values in zip(*columns, strict=True)]
    start = step.initial_state(1)
    carried = len(start)
    with torch.inference_mode():
        call = prepare(step, (*start, *inputs[0]))

    @torch.inference_mode()
    def write() -> np.ndarray:
        state, written = start, []
        for values in inputs:
            results = call(*state, *values)
            state = results[:carried]
            written.append(results[carried])  # the first output
        return torch.cat(written).numpy()

    return write
