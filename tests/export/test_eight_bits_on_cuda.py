"""Matrices of eight bits that cuBLAS does not multiply by as they are: what stands for them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from safetensors.numpy import load_file

from contract.manifest import DERIVED, WEIGHTS
from export.artifact import read_artifact
from export.integers import LEAST_ROWS
from models.handwriting import HandwritingModel
from models.quantized import settle
from tests.artifacts import SCRAWL, write_model
from tests.export.signed import require_the_same_on_cuda

_PRODUCT = "MatMulInteger"


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pen of eight bits with matrices of fewer rows than cuBLAS multiplies by, and of more."""
    torch.manual_seed(0)
    model = settle(HandwritingModel(replace(SCRAWL, units=LEAST_ROWS, precision="int8")))
    return write_model(tmp_path_factory.mktemp("larger"), "larger", model)


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
    manifest = read_artifact(larger)
    assert manifest.graphs.cuda is not None
    rows = {n: w.shape[0] for n, w in load_file(larger / WEIGHTS).items() if w.dtype == np.int8}
    by = {
        runner: {n.input[1].removesuffix("_aligned") for n in graph.node if n.op_type == _PRODUCT}
        for runner, file in (
            ("cpu", manifest.graphs.step.plain),
            ("cuda", manifest.graphs.cuda.plain),
        )
        for graph in [onnx.load(larger / file, load_external_data=False).graph]
    }
    assert by["cpu"] == rows.keys()
    assert by["cuda"] == {name for name in rows if rows[name] >= LEAST_ROWS}
    assert min(rows.values()) < LEAST_ROWS
    require_the_same_on_cuda(larger)
