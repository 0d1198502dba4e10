"""Matrices of eight bits that cuBLAS does not multiply by as they are: what stands for them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from safetensors.numpy import load_file
from torch import Tensor, nn

from contract.manifest import DERIVED, WEIGHTS
from export.cuda import without_kernel
from export.integers import LEAST_ROWS
from export.parity.served import differing_bytes, session_of, session_options
from export.variant import GraphWriter
from models.generation import Port, Step, Tensors
from models.quantized import round_matrices, settle
from tests.export.least import PlainKind

_PRODUCT = "MatMulInteger"
_INPUTS = 12


@dataclass(frozen=True)
class _Config:
    precision: str = "int8"


class Matrices(nn.Module):
    """Of fewer rows than cuBLAS multiplies by, and of more, with odd columns and with even ones."""

    def __init__(self) -> None:
        super().__init__()
        self.config = _Config()
        self.few = nn.Linear(_INPUTS, LEAST_ROWS)
        self.odd = nn.Linear(LEAST_ROWS, 25)
        self.odder = nn.Linear(LEAST_ROWS + 25, 31)
        self.even = nn.Linear(LEAST_ROWS, 8)
        round_matrices(self)

    def hidden_inputs(self) -> set[str]:
        return {"odd.weight", "even.weight"}

    def forward(self, x: Tensor) -> Tensors:
        hidden = torch.tanh(self.few(x))
        odd = self.odd(hidden)
        return odd, self.odder(torch.cat([hidden, odd], -1)), self.even(hidden)


class MatricesStep(Step):
    """`x (B, 12) -> (odd, odder, even)`: a step that no state is carried by, so it is traced
    sooner than any that is served."""

    def __init__(self, model: Matrices) -> None:
        super().__init__()
        self.model = model
        self.state_ports = self.row_ports = ()
        self.step_ports = (Port("x", torch.float32, (_INPUTS,)),)
        self.output_ports = tuple(Port(n, torch.float32) for n in ("odd", "odder", "even"))

    def forward(self, *inputs: Tensor) -> Tensors:
        return self.model(*inputs)


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their weights, and a step for the CPU and one for CUDA."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("larger")
    writer = GraphWriter(PlainKind(MatricesStep), settle(Matrices()))  # type: ignore[arg-type]
    for runner, signed in (("cpu", False), ("cuda", True)):
        writer.write(folder / f"{runner}.onnx", scan=False, filtered=False, signed=signed)
    return folder


def test_a_matrix_for_cuda_has_columns_of_zeros_as_cublas_wants_or_is_of_floats(
    larger: Path,
) -> None:
    weights, found = load_file(larger / WEIGHTS), load_file(larger / DERIVED)
    integers = {n: w for n, w in weights.items() if w.dtype == np.int8}
    few = [name for name, whole in integers.items() if len(whole) < LEAST_ROWS]
    odd = [n for n, whole in integers.items() if n not in few and whole.shape[1] % 4]
    ends = {"_aligned": odd, "_in_floats": few}
    assert found.keys() == {name + end for end, names in ends.items() for name in names}
    assert (len(odd), len(few)) == (2, 1)
    for name in few:
        copy = found[f"{name}_in_floats"]
        assert copy.dtype == np.float32
        assert np.array_equal(copy, integers[name])
    for name in odd:
        whole = integers[name]
        wide, columns = found[f"{name}_aligned"], whole.shape[1]
        assert wide.shape[1] % 4 == 0
        assert wide.shape[1] - columns < 4
        assert np.array_equal(wide[:, :columns], whole)
        assert not wide[:, columns:].any()


def test_by_few_rows_cuda_multiplies_in_floats(larger: Path) -> None:
    rows = {n: w.shape[0] for n, w in load_file(larger / WEIGHTS).items() if w.dtype == np.int8}
    by = {
        runner: {n.input[1].removesuffix("_aligned") for n in graph.node if n.op_type == _PRODUCT}
        for runner in ("cpu", "cuda")
        for graph in [onnx.load(larger / f"{runner}.onnx", load_external_data=False).graph]
    }
    assert by["cpu"] == rows.keys()
    assert by["cuda"] == {name for name in rows if rows[name] >= LEAST_ROWS}
    assert min(rows.values()) < LEAST_ROWS


def test_its_products_are_those_of_the_cpu_and_have_kernels(larger: Path) -> None:
    assert without_kernel(larger / "cuda.onnx") == []
    x = np.random.default_rng(0).uniform(-2, 2, (40, _INPUTS)).astype(np.float32)
    outputs = []
    for runner in ("cpu", "cuda"):
        session = session_of(larger / f"{runner}.onnx", session_options())
        names = [port.name for port in session.get_outputs()]
        outputs.append(dict(zip(names, session.run(names, {"x": x}), strict=True)))
    assert differing_bytes(*outputs) == 0
