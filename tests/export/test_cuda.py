"""A CUDA graph can be captured of every step graph: no node of it would fall back to the CPU."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from export.cuda import known_kernels, without_kernel
from export.graph import INTEGER, OPSET, ROW_INDEPENDENT

# Of those that have graphs for CUDA alone, these.
_SHIPPED = [
    path
    for folder in sorted(Path(__file__).parents[2].glob("artifacts/*"))
    for path in sorted(folder.glob("step-cuda*.onnx")) or sorted(folder.glob("step*.onnx"))
]


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=f"{path.parent.name}-{path.stem}") for path in _SHIPPED]
)
def test_every_node_of_a_shipped_step_has_a_kernel(path: Path) -> None:
    assert without_kernel(path) == []


@pytest.mark.parametrize("name", ["letters", "noise", "scrawl"])
def test_every_node_of_a_step_written_now_has_a_kernel(
    artifacts: Path, inks: Path, name: str
) -> None:
    folder = inks if name == "scrawl" else artifacts
    paths = sorted((folder / name).glob("step*.onnx"))
    assert paths
    assert [problem for path in paths for problem in without_kernel(path)] == []


def test_the_table_has_every_operator_that_may_be_exported() -> None:
    # A Scan is what CUDA graphs have to do without; Constants become initialisers.
    assert (ROW_INDEPENDENT | INTEGER) - known_kernels().keys() == {"Scan", "Constant"}


def one_node(
    folder: Path,
    operator: str,
    opset: int,
    *,
    element: int = TensorProto.FLOAT,
    inputs: int = 1,
    to: int | None = None,
) -> Path:
    names = [f"in{index}" for index in range(inputs)]
    given = [helper.make_tensor_value_info(name, element, [2, 3]) for name in names]
    made = helper.make_tensor_value_info("out", to or element, None)
    node = helper.make_node(operator, names, ["out"], **({} if to is None else {"to": to}))
    graph = helper.make_graph([node], "one", given, [made])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.save(model, folder / "one.onnx")
    return folder / "one.onnx"


@pytest.mark.parametrize(
    ("operator", "opset", "problem"),
    [
        ("ReduceMax", 18, None),
        # An open range is that of its first version alone, whatever came after.
        ("ReduceMax", 20, "ReduceMax of out: no kernel of version 20"),
        ("Exp", 12, "Exp of out: no kernel of version 6"),
        ("Transpose", 23, None),
        ("Transpose", 24, "Transpose of out: no kernel of version 24"),
        ("Identity", 18, None),
        ("Identity", 21, "Identity of out: no kernel of version 21"),
        ("Erf", 18, "Erf of out: no kernel is known"),
    ],
)
def test_a_kernel_is_of_a_version(
    tmp_path: Path, operator: str, opset: int, problem: str | None
) -> None:
    found = without_kernel(one_node(tmp_path, operator, opset))
    assert found == ([] if problem is None else [problem])


def test_a_kernel_is_of_a_type(tmp_path: Path) -> None:
    path = one_node(tmp_path, "Exp", OPSET, element=TensorProto.FLOAT16)
    assert without_kernel(path) == ["Exp of out: no kernel for float16 as T"]


def test_a_kernel_is_of_the_type_that_it_makes_as_well(tmp_path: Path) -> None:
    for element, problems in (
        (TensorProto.INT32, []),
        (TensorProto.FLOAT16, ["Cast of out: no kernel for float16 as T2"]),
    ):
        path = one_node(tmp_path, "Cast", OPSET, to=element)
        assert without_kernel(path) == problems


def test_axes_that_are_computed_would_have_to_be_copied(tmp_path: Path) -> None:
    path = one_node(tmp_path, "ReduceMax", OPSET, inputs=2)
    assert without_kernel(path) == ["ReduceMax of out: it reads on the host what is computed"]


@pytest.mark.parametrize(
    ("rows", "columns", "fits"),
    [(128, 30, False), (400, 121, False), (128, 32, True), (127, 32, False), (68, 1600, False)],
)
def test_cublas_wants_the_columns_of_bytes_to_be_a_multiple_of_four_and_enough_rows(
    tmp_path: Path, rows: int, columns: int, fits: bool
) -> None:
    matrix = onnx.numpy_helper.from_array(np.ones((rows, columns), np.int8), "matrix")
    given = helper.make_tensor_value_info("in", TensorProto.INT8, [2, rows])
    made = helper.make_tensor_value_info("out", TensorProto.INT32, None)
    node = helper.make_node("MatMulInteger", ["in", "matrix"], ["out"])
    graph = helper.make_graph([node], "one", [given], [made], [matrix])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.save(model, tmp_path / "one.onnx")
    assert [("multiple of 4" in problem) for problem in without_kernel(tmp_path / "one.onnx")] == (
        [] if fits else [True]
    )
