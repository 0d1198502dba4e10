"""Whether onnxruntime's CUDA provider has a kernel for every node of a graph, without a GPU.

A CUDA graph can be captured where no node falls back to the CPU and nothing is copied between the
two; `cuda.toml` has the provider's kernels and where they are listed.
"""

import tomllib
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import defs, shape_inference

from export.integers import LEAST_ROWS, MULTIPLE

_TABLE = Path(__file__).with_name("cuda.toml")
_HOST = "host"
_PRODUCT = "MatMulInteger"
# What no table of kernels says. Fewer rows will do for at most 16 inputs, or a multiple of 32.
_SIZE = (
    f"cuBLAS multiplies by a matrix of bytes where its columns are a multiple of {MULTIPLE} alone, "
    f"and its rows {LEAST_ROWS} at least"
)


def without_kernel(path: Path) -> list[str]:
    """The nodes of an ONNX file that keep a CUDA graph from being captured, and why."""
    model = shape_inference.infer_shapes(onnx.load(path, load_external_data=False))
    opset = model.opset_import[0].version
    graph = model.graph
    tensors = {t.name: t.data_type for t in graph.initializer}
    sizes = {t.name: t.dims for t in graph.initializer if len(t.dims) == 2}
    values = (*graph.input, *graph.output, *graph.value_info)
    types = {v.name: v.type.tensor_type.elem_type for v in values} | tensors
    found = [(node, _problem(node, opset, types, tensors.keys())) for node in graph.node]
    found += [
        (n, _SIZE)
        for n in graph.node
        if n.op_type == _PRODUCT and _refused(*sizes.get(n.input[1], (LEAST_ROWS, 0)))
    ]
    return [f"{node.op_type} of {node.output[0]}: {why}" for node, why in found if why]


def _refused(rows: int, columns: int) -> bool:
    """Whether cuBLAS refuses a matrix of bytes of this size."""
    return rows < LEAST_ROWS or columns % MULTIPLE > 0


def _problem(
    node: onnx.NodeProto, opset: int, types: dict[str, int], constants: Set[str]
) -> str | None:
    """Why a node has no kernel on CUDA, given the element types of all values and which of them are
    `constants`, by name; None if it has one."""
    kernels = known_kernels().get(node.op_type)
    if kernels is None:
        return "no kernel is known"
    schema = defs.get_schema(node.op_type, opset)
    rows = [types for versions, types in kernels.items() if _has(versions, schema.since_version)]
    if not rows:
        return f"no kernel of version {schema.since_version}"
    for parameter, name in _typed(schema, node):
        held = onnx.TensorProto.DataType.Name(types[name]).lower()
        allowed = rows[0].get(parameter)
        if allowed is not None and held not in allowed.split():
            return f"no kernel for {held} as {parameter}"
    if kernels.get(_HOST) and not constants >= {name for name in node.input[1:] if name}:
        return "it reads on the host what is computed"
    return None


def _typed(schema: defs.OpSchema, node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    """The type parameter of every input and output of a node; the last of a schema may repeat."""
    for formal, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for index, name in enumerate(names):
            if name:
                yield formal[min(index, len(formal) - 1)].type_str, name


def _has(versions: str, since: int) -> bool:
    """Whether a range of the table holds this version of an operator. An open one holds its first
    version alone: onnxruntime takes a kernel without an end for no later one."""
    first, _, last = versions.rstrip("+").partition("-")
    return versions != _HOST and int(first) <= since <= int(last or first)


@cache
def known_kernels() -> dict[str, dict[str, Any]]:
    """By operator and range of versions, the types of each parameter; `host` where it has that."""
    return tomllib.loads(_TABLE.read_text("utf-8"))
