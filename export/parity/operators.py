"""Which onnxruntime CPU kernels give a row the same bits in any batch: why there is an allow-list.

Each operator runs alone on odd widths, a row by itself and the same row inside batches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from contract.manifest import Finding
from export.graph import OPSET
from export.parity.served import session_options

WIDTHS = (1, 3, 7, 17, 31, 33, 65, 129, 257, 513)
BATCHES = (2, 3, 5, 8, 17, 33, 65)

# Operators of the allow-list that compute; the others move, compare or select.
COMPUTING = (
    "Add", "CumSum", "Div", "Exp", "Gemm", "LayerNormalization", "MatMul", "MatMulInteger", "Mul",
    "ReduceMax", "Sigmoid", "Sqrt", "Sub", "Tanh",
)  # fmt: skip
# Known to depend on the batch: the comparison must find at least one, or it has no power.
EXCLUDED = ("ReduceSum", "Log", "Softplus", "Sin", "Cos")

_Part = tuple[list[NodeProto], dict[str, NDArray[Any]]]  # of a graph: nodes and constants


@dataclass(frozen=True, slots=True)
class OperatorBits:
    """How many of the rows compared came out with other bits, over all widths and batches."""

    operator: str
    differing_rows: int
    rows: int


def compare_operator(operator: str, *, prepacking: bool = True) -> OperatorBits:
    """Run one operator at every width and batch, and each row of it alone."""
    random = np.random.default_rng(0)
    differing = total = 0
    for width in WIDTHS:
        run = _session(operator, width, random, prepacking)
        x = random.normal(0, 2, (max(BATCHES), width)).astype(np.float32)
        if operator in ("Sqrt", "Log"):
            x = np.abs(x) + np.float32(1e-3)
        alone = [run(x[r : r + 1])[0] for r in range(len(x))]
        for batch in BATCHES:
            rows = random.permutation(len(x))[:batch]
            for place, result in zip(rows, run(x[rows]), strict=True):
                differing += result.tobytes() != alone[place].tobytes()
            total += batch
    return OperatorBits(operator, differing, total)


def operators() -> list[Finding]:
    """The allow-list's computing operators, and the control that others do differ."""
    measured = [compare_operator(name) for name in (*COMPUTING, *EXCLUDED)]
    moved = {m.operator: m.differing_rows for m in measured}
    kept = sum(moved[name] for name in COMPUTING)
    excluded = [name for name in EXCLUDED if moved[name]]
    rows = sum(m.rows for m in measured if m.operator in COMPUTING)
    return [
        Finding(
            name="operators", value=kept, bound=0,
            detail=f"of {rows:,} rows differ between alone and in a batch, {len(COMPUTING)} "
            f"operators at {len(WIDTHS)} odd widths",
        ),
        Finding(
            name="operators, control", value=float(not excluded), bound=0,
            detail=f"outside the allow-list these differ: {', '.join(excluded) or 'none'}",
        ),
    ]  # fmt: skip


def _session(
    operator: str, width: int, random: np.random.Generator, prepacking: bool
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    nodes, constants = _nodes(operator, width, random)
    graph = helper.make_graph(
        nodes,
        operator,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", width])],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    options = session_options(prepacking=prepacking)
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def run(x: NDArray[np.float32]) -> NDArray[np.float32]:
        result: NDArray[np.float32] = session.run(["y"], {"x": np.ascontiguousarray(x)})[0]
        return result

    return run


def _nodes(operator: str, width: int, random: np.random.Generator) -> _Part:
    """What computes `y` of `x`: one node with its constants, but for matrices of each row's own and
    of eight bits."""
    match operator:
        case "Add" | "Sub" | "Mul" | "Div":
            return _node(operator, {"other": random.uniform(0.5, 2, width).astype(np.float32)})
        case "Gemm":
            weight = random.normal(0, 1, (2 * width + 1, width)).astype(np.float32)
            return _node(operator, {"weight": weight}, transB=1)
        case "LayerNormalization":
            gain = random.normal(1, 0.2, width).astype(np.float32)
            return _node(operator, {"gain": gain}, epsilon=2.0**-17)
        case "CumSum":
            return _node(operator, {"axis": np.array(1, np.int64)})
        case "ReduceMax" | "ReduceSum":
            return _node(operator, {"axes": np.array([1], np.int64)})
        case "MatMul":
            return _row_times_its_matrix(width, random)
        case "MatMulInteger":
            return _integers(width, random)
    return _node(operator, {})


def _node(operator: str, constants: dict[str, NDArray[Any]], **attributes: Any) -> _Part:
    return [helper.make_node(operator, ["x", *constants], ["y"], **attributes)], constants


def _row_times_its_matrix(width: int, random: np.random.Generator) -> _Part:
    """Each row times a matrix of its own, made from the row: how the window of a text is summed."""
    constants: dict[str, NDArray[Any]] = {
        "weight": random.normal(0, 1, (width, 2 * width + 1)).astype(np.float32),
        "first": np.array([1], np.int64),
        "last": np.array([2], np.int64),
    }
    nodes = [
        helper.make_node("Unsqueeze", ["x", "first"], ["row"]),
        helper.make_node("Unsqueeze", ["x", "last"], ["column"]),
        helper.make_node("Mul", ["column", "weight"], ["matrix"]),
        helper.make_node("MatMul", ["row", "matrix"], ["y"]),
    ]
    return nodes, constants


def _integers(width: int, random: np.random.Generator) -> _Part:
    """Each row as two digits on fixed scales, both times a matrix of int8 and put together again:
    a product with a matrix of eight bits."""
    outputs = 2 * width + 1
    constants: dict[str, NDArray[Any]] = {
        "scale": np.array(1 / 32, np.float32),
        "finer": np.array(1 / 8192, np.float32),
        "zero": np.array(128, np.uint8),
        "weight": random.integers(-64, 65, (width, outputs)).astype(np.int8),
        "apart": np.array([2, -1], np.int64),
        "worths": np.array([[1 / 32, 1 / 8192]], np.float32),
        "side by side": np.array([-1, outputs], np.int64),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["digit"]),
        helper.make_node("DequantizeLinear", ["digit", "scale", "zero"], ["near"]),
        helper.make_node("Sub", ["x", "near"], ["rest"]),
        helper.make_node("QuantizeLinear", ["rest", "finer", "zero"], ["second"]),
        helper.make_node("Concat", ["digit", "second"], ["rows"], axis=0),
        helper.make_node("MatMulInteger", ["rows", "weight", "zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["real", "apart"], ["digitwise"]),
        helper.make_node("MatMul", ["worths", "digitwise"], ["total"]),
        helper.make_node("Reshape", ["total", "side by side"], ["y"]),
    ]
    return nodes, constants
