"""What a graph must be before onnxruntime sees it.

onnxruntime runs whatever a file says: loops without end, weights of files elsewhere, constants that
take all memory before a session exists. The graphs this project exports need next to nothing of
that, so everything else is refused:

- operators that are not listed, and control flow but the one Scan over the steps of a chunk
- nodes without an end, over which it would take its time while it loads
- a node of constants alone: onnxruntime would compute it, however large, while it loads
- tensors whose shape and bytes disagree, or that lie in a file without a hash
- inputs and outputs other than the manifest's ports
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from contract.manifest import Manifest, Port
from service.graph import Graph, Node, Tensor, Value

# What export may emit (`export/graph.py`), less what it folds away or never needed.
OPERATORS = frozenset(
    """
    Add And ArgMax Cast Concat CumSum Div Equal Exp Gather GatherElements Gemm Greater
    GreaterOrEqual Identity LayerNormalization Less LessOrEqual MatMul Max Min Mul Neg Not
    ReduceMax ReduceMin Reshape Scan Sigmoid Slice Split Sqrt Squeeze Sub Tanh TopK Transpose
    Unsqueeze Where
    """.split()  # noqa: SIM905
)
# The same of models whose matrices are integers.
INTEGER = frozenset({"DequantizeLinear", "MatMulInteger", "QuantizeLinear"})

# Numbers of ONNX's element types, and the bytes an element takes.
_ELEMENTS = {"float32": 1, "int64": 7, "bool": 9}
_ELEMENT_BYTES = {1: 4, 2: 1, 3: 1, 7: 8, 9: 1}
_MOST_DIMENSIONS = 8
# Exported ones have some 200; over 20,000 onnxruntime takes ten seconds, and the more the slower.
_MOST_NODES = 4096
_MOST_DIGITS = 18  # of a number below 2 ** 63


class GraphError(ValueError):
    """A graph that no artifact has; the message says why."""


def check_graph(
    graph: Graph, manifest: Manifest, sizes: Mapping[str, int], *, scan: bool, filtered: bool
) -> None:
    """Raise `GraphError` unless the graph is harmless and has the ports of the manifest.

    `sizes` are the bytes of each file that it may take weights from. `scan`: it runs all steps of a
    chunk, not one. `filtered`: it has the options that leave symbols out.
    """
    ports = manifest.ports
    row = [p for p in ports.row if filtered or p.name not in manifest.filters]
    after = [p.model_copy(update={"name": f"{p.name}_after"}) for p in ports.state]
    inputs = [*_values(ports.state), *_values(ports.step, scan=scan), *_values(row)]
    _check_values("inputs", graph.inputs, inputs)
    outputs = [*_values(after), *_values(ports.output, scan=scan)]
    _check_values("outputs", graph.outputs, outputs)
    _check_tensors(graph.tensors, sizes)
    operators = OPERATORS | INTEGER if manifest.precision == "int8" else OPERATORS
    _check_nodes(graph, {tensor.name: tensor for tensor in graph.tensors}, operators)
    _check_scans(graph.nodes, {p.name for p in ports.step}, int(scan))


def _values(ports: Iterable[Port], *, scan: bool = False) -> list[Value]:
    """Ports as a graph has them: rows stand before the shape of one, and steps before rows."""
    leading = (None, None) if scan else (None,)
    return [Value(p.name, _ELEMENTS[p.dtype], (*leading, *p.shape)) for p in ports]


def _check_values(what: str, found: Sequence[Value], expected: Sequence[Value]) -> None:
    """In any order."""
    if sorted(found, key=lambda v: v.name) != sorted(expected, key=lambda v: v.name):
        differing = sorted({v.name for v in {*found} ^ {*expected}}) or "one stands twice"
        raise GraphError(f"{what} are not the manifest's ports: {differing}")


def _check_tensors(tensors: Sequence[Tensor], sizes: Mapping[str, int]) -> None:
    """Each has the bytes of its shape, and all together no more than the files: none twice."""
    external = 0
    for tensor in tensors:
        if min(tensor.shape, default=1) < 1 or len(tensor.shape) > _MOST_DIMENSIONS:
            raise GraphError(
                f"tensor {tensor.name} has shape {list(tensor.shape[: _MOST_DIMENSIONS + 1])}; it "
                f"must be of at most {_MOST_DIMENSIONS} dimensions, each of size 1 or more"
            )
        size = math.prod(tensor.shape) * _ELEMENT_BYTES.get(tensor.element, 0)
        given = tensor.inline_bytes
        if tensor.external is not None:
            given += _external_bytes(tensor.external, sizes)
            external += size
        if given != size or not size:
            raise GraphError(f"tensor {tensor.name} has {given} bytes; its shape needs {size}")
    if external > sum(sizes.values()):
        raise GraphError(f"tensors take {external} bytes of the files, which have fewer")


def _external_bytes(entries: Mapping[str, str], sizes: Mapping[str, int]) -> int:
    """How many bytes of a listed file these entries name."""
    if entries.keys() != {"location", "offset", "length"} or entries["location"] not in sizes:
        raise GraphError(f"{dict(entries)} is no place in one of: {', '.join(sizes)}")
    offset, length = (_decimal(entries[name]) for name in ("offset", "length"))
    if offset + length > sizes[entries["location"]]:
        raise GraphError(f"{dict(entries)} is beyond the end of the file")
    return length


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise GraphError(f"{text[:_MOST_DIGITS]!r} is not a number of bytes")
    return int(text)


def _check_nodes(graph: Graph, tensors: Mapping[str, Tensor], operators: frozenset[str]) -> None:
    """All nodes, those of a body included, which sees the tensors of the graph around it."""
    if len(tensors) < len(graph.tensors):
        raise GraphError("two tensors have one name")
    if len(graph.nodes) > _MOST_NODES:
        raise GraphError(f"{len(graph.nodes)} nodes; there may be {_MOST_NODES}")
    for node in graph.nodes:
        if node.operator not in operators:
            raise GraphError(f"operator {node.operator!r} is not one that is served")
        if tensors.keys() >= set(filter(None, node.inputs)):
            raise GraphError(f"{node.operator} {node.outputs} is computed from constants alone")
        if node.operator == "Split" and len(node.outputs) != _parts(node, tensors):
            raise GraphError(f"Split {node.outputs} has not that many parts")
        if node.body is not None:
            if node.operator != "Scan" or node.body.tensors:
                raise GraphError(
                    f"{node.operator} has a graph as an attribute; only a Scan may have one, and "
                    "that without tensors of its own"
                )
            _check_nodes(node.body, tensors, operators)


def _parts(node: Node, tensors: Mapping[str, Tensor]) -> int:
    """How many parts a Split makes; onnxruntime ends the process where its outputs are more."""
    if len(node.inputs) == 1:
        return node.numbers.get("num_outputs", 0)
    sizes = tensors.get(node.inputs[1])
    return sizes.shape[0] if sizes is not None and len(sizes.shape) == 1 else 0


def _check_scans(nodes: Sequence[Node], steps: set[str], count: int) -> None:
    """A Scan goes over the steps of the caller, and over nothing that the file could make long."""
    scans = [node for node in nodes if node.operator == "Scan"]
    if len(scans) != count:
        raise GraphError(f"{len(scans)} Scan nodes; there must be {count}")
    for scan in scans:
        over = scan.numbers.get("num_scan_inputs", 0)
        if scan.body is None or over < 1 or set(scan.inputs[-over:]) != steps:
            raise GraphError("the Scan is not over the inputs of each step")
