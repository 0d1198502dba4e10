"""The exactness of the slots runner on a GPU: `python -m bench.gpu` (`make gpu-check`).

Attests every model on the provider, makes the parity report's comparisons with training there, asks
whether a row's bits depend on its neighbours, whether of equal numbers the first counts and whether
bytes are multiplied at every size that an exported graph has. Writes
JSON to docs/results, or to `--out`. (Structure is the graph's own; `make parity` has it.)
`--provider cpu` rehearses the same code where there is no GPU.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from bench.peers.launch import end_in_order
from contract.golden import Arrays
from contract.manifest import Finding
from export.artifact import load_model
from export.cuda import without_kernel
from export.golden import Sample
from export.graph import OPSET
from export.integers import LEAST_ROWS, MULTIPLE
from export.kinds import KINDS
from export.parity.served import differing_bytes, follow, read
from export.results import command, machine, results_folder, write_json
from service.artifact import Artifact, ArtifactError, artifact_folders, load_artifact
from service.attestation import attest
from service.engine.runners import Runner, make_runner, stack_rows
from service.engine.runtime import Runtime, choose_runtime
from service.settings import Settings
from training.command import require_device

STEPS = 100
_SEED = 7
# Numbers that ArgMax has to choose from: the cases of a mixture, places of a text, bytes.
_TIED = (40, 64, 256)
_ROWS = 1000  # of each
# A matrix of bytes for CUDA has so many rows and columns or others like them; an input is three or
# four rows of digits.
_HEIGHTS = (LEAST_ROWS, 132, 256, 400, 468, 768, 800, 1024)
_WIDTHS = (MULTIPLE, 28, 32, 124, 192, 256, 1600, 3072)
_INPUTS = (1, 3, 4, 16, 17, 18, 24, 31, 32, 33, 48, 72, 96)


def on_device(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None
) -> argparse.Namespace:
    """The options of a command that has a `--device`; it ends where PyTorch has not that device."""
    options = parser.parse_args(arguments)
    try:
        require_device(options.device)
    except ValueError as error:
        parser.error(str(error))
    return options


class RunnerGraph:
    """A runner of the service as `export.parity.served.Graph`; the rows of a batch stand in the
    slots from the first on."""

    def __init__(self, artifact: Artifact, runner: Runner) -> None:
        self._artifact, self._runner = artifact, runner

    def initial_state(self, batch: int) -> Arrays:
        return stack_rows([self._artifact.initial_state()] * batch, axis=0)

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        slots = range(steps["force"].shape[1])
        for slot in slots:
            self._runner.load(slot, {name: array[slot] for name, array in state.items()})
        outputs = self._runner.run(slots, steps, row, filtered=False)
        return stack_rows([self._runner.read(slot) for slot in slots], axis=0), outputs


def check(artifact: Artifact, runner: Runner, steps: int) -> list[Finding]:
    """What its kind compares with training, in as many rows as there are slots, and neighbours."""
    kind, model = KINDS[artifact.manifest.kind], load_model(artifact.folder, artifact.manifest)
    sample = kind.sample(model, steps, runner.width, _SEED)
    graph = RunnerGraph(artifact, runner)
    findings = kind.compare(model, sample, *follow(graph, sample))
    return [*findings, neighbours(graph, sample), kernels(artifact)]


def neighbours(graph: RunnerGraph, sample: Sample) -> Finding:
    """Every row alone in the first slot, and all of them together, each in a slot of its own."""
    rows = sample.symbols.shape[1]
    _, together = graph.run(graph.initial_state(rows), sample.read(), sample.rows())
    return Finding(
        name="neighbours", value=differing_bytes(read(graph, sample), together), bound=0,
        detail=f"bytes moved with the slot or the others' work in {len(sample.symbols) * rows:,} "
        "row-steps",
    )  # fmt: skip


def kernels(artifact: Artifact) -> Finding:
    """Whether a CUDA graph can hold every node of the step graphs."""
    files = artifact.manifest.graphs.step_on("cuda").files().values()
    found = [problem for file in files for problem in without_kernel(artifact.folder / file)]
    detail = "; ".join(found) or "nodes that CUDA has no kernel for"
    return Finding(name="kernels", value=len(found), bound=0, detail=detail)


def ties(provider: str) -> Finding:
    """ArgMax of rows whose largest number stands at several places, as it does in the sampler: of a
    cumulative sum cut off at its target, of zeros alone, and of any few numbers."""
    random = np.random.default_rng(_SEED)
    wrong = total = 0
    for width in _TIED:
        target = random.random((_ROWS, 1), np.float32) * width
        sums = np.minimum(random.random((_ROWS, width), np.float32).cumsum(1) * 2, target)
        few = random.integers(0, 3, (_ROWS, width)).astype(np.float32)
        rows = np.concatenate([sums, np.zeros((1, width), np.float32), few])
        wrong += int((_argmax(provider, rows) != rows.argmax(1)).sum())
        total += len(rows)
    detail = f"of {total:,} rows with equal numbers did not count the first"
    return Finding(name="ties", value=wrong, bound=0, detail=detail)


def _argmax(provider: str, rows: np.ndarray) -> np.ndarray:
    given = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["B", "V"])
    found = helper.make_tensor_value_info("places", TensorProto.INT64, ["B"])
    node = helper.make_node("ArgMax", ["rows"], ["places"], axis=-1, keepdims=0)
    (places,) = _session(provider, node, [given], found).run(None, {"rows": rows})
    return np.asarray(places)


def products(provider: str) -> Finding:
    """Bytes times bytes of every size: whether one is refused, or is not the product."""
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT8, sizes)
        for name, sizes in (("rows", ["B", "K"]), ("matrix", ["K", "N"]))
    ]
    found = helper.make_tensor_value_info("sums", TensorProto.INT32, ["B", "N"])
    node = helper.make_node("MatMulInteger", ["rows", "matrix"], ["sums"])
    session = _session(provider, node, given, found)
    random = np.random.default_rng(_SEED)
    odd = []
    for height, width in product(_HEIGHTS, _WIDTHS):
        rows = random.integers(-127, 128, (max(_INPUTS), height), np.int8)
        matrix = random.integers(-64, 65, (height, width), np.int8)
        sums = rows.astype(np.float64) @ matrix  # below 2**53, so exact
        for count in _INPUTS:
            try:
                (told,) = session.run(None, {"rows": rows[:count], "matrix": matrix})
            except Exception:  # onnxruntime raises a type of its own for each failure
                told = None
            if told is None or not np.array_equal(told, sums[:count]):
                odd.append(f"{count} x {height} x {width}")
    total = len(_HEIGHTS) * len(_WIDTHS) * len(_INPUTS)
    detail = f"of {total:,} products of bytes are refused or wrong" + "".join(
        f", {size}" for size in odd[:3]
    )
    return Finding(name="products", value=len(odd), bound=0, detail=detail)


def _session(
    provider: str, node: NodeProto, given: list[ValueInfoProto], found: ValueInfoProto
) -> ort.InferenceSession:
    """Of a graph of one node."""
    opsets = [helper.make_opsetid("", OPSET)]
    graph = helper.make_graph([node], "one", given, [found])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    providers = [f"{provider.upper()}ExecutionProvider"]
    return ort.InferenceSession(model.SerializeToString(), providers=providers)


def judge(artifact: Artifact, runtime: Runtime) -> tuple[bool, dict[str, Any]]:
    """Print and describe what was found of a model, and whether all of it holds. One that a library
    of the GPU cannot compute does not keep the others from being judged."""
    try:
        runner = make_runner(artifact, runtime)
        verdict, findings = attest(artifact, runner), check(artifact, runner, STEPS)
    except RuntimeError as error:
        print(f"{artifact.name}: FAIL {error}")
        return False, {"error": str(error)}
    print(f"{artifact.name}: attested {verdict.ok}, max error {verdict.max_error:.2g}")
    print(*(f"  {finding.line()}" for finding in findings), sep="\n")
    parity = [finding.describe() for finding in findings]
    holds = verdict.ok and all(finding.holds for finding in findings)
    return holds, {"parity": parity, "attestation": verdict.describe()}


def main(arguments: list[str] | None = None) -> int:
    """0 if every model was attested, every bound holds and no row moved with its neighbours."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--provider", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=results_folder, default="docs/results", help="where to write")
    options = parser.parse_args(arguments)
    try:
        runtime = choose_runtime(Settings(provider=options.provider, runner="slots"))
    except ArtifactError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    models: list[dict[str, Any]] = []
    operators = [ties(runtime.provider), products(runtime.provider)]
    print(*(finding.line() for finding in operators), sep="\n")
    whole = all(finding.holds for finding in operators)
    for artifact in map(load_artifact, artifact_folders(Settings().artifacts)):
        holds, described = judge(artifact, runtime)
        whole = whole and holds
        models.append({"model": artifact.name} | described)
    cuda = options.provider == "cuda"
    device = torch.cuda.get_device_name() if cuda else "cpu"
    content: dict[str, Any] = {"command": command("bench.gpu", arguments)}
    content |= {"device": device, "runtime": runtime.fingerprint, "machine": machine()}
    content |= {finding.name: finding.describe() for finding in operators}
    name = f"{'gpu' if cuda else 'rehearsal'}-{device.replace(' ', '-').lower()}.json"
    write_json(options.out / name, content | {"models": models})
    print(f"written to {options.out / name}")
    return 0 if whole else 1


if __name__ == "__main__":
    end_in_order(main)
