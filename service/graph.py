"""ONNX graphs, as much of them as those this project exports have: a field that none of them has,
such as functions, sparse tensors or constants in attributes, is an error.

The numbers are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from dataclasses import dataclass

from service.protobuf import Field, Schema, WireError, read_message

_IGNORED = Field("ignored", "ignored")
_MODEL: Schema = {
    **dict.fromkeys((1, 2, 3, 4, 5, 6), _IGNORED),  # versions, producer, documentation
    7: Field("graph", "message"),
    8: Field("opsets", "message", many=True),
}
_OPSET: Schema = {1: Field("domain", "text"), 2: _IGNORED}
_GRAPH: Schema = {
    1: Field("nodes", "message", many=True),
    5: Field("tensors", "message", many=True),
    11: Field("inputs", "message", many=True),
    12: Field("outputs", "message", many=True),
    **dict.fromkeys((2, 10, 13), _IGNORED),  # name, documentation, types of what is in between
}
_NODE: Schema = {
    1: Field("inputs", "text", many=True),
    2: Field("outputs", "text", many=True),
    3: _IGNORED,  # name
    4: Field("operator", "text"),
    5: Field("attributes", "message", many=True),
    7: Field("domain", "text"),
}
_ATTRIBUTE: Schema = {
    1: Field("name", "text"),
    3: Field("number", "number"),
    6: Field("graph", "message"),
    **dict.fromkeys((2, 8, 20), _IGNORED),  # a float, numbers, and which of all these it is
}
_TENSOR: Schema = {
    1: Field("shape", "number", many=True),
    2: Field("element", "number"),
    8: Field("name", "text"),
    9: Field("content", "message"),
    13: Field("external", "message", many=True),
    14: Field("location", "number"),
}
_ENTRY: Schema = {1: Field("key", "text"), 2: Field("value", "text")}
_VALUE: Schema = {
    1: Field("name", "text"),
    2: Field("type", "message"),
    **dict.fromkeys((3, 4), _IGNORED),  # documentation, notes of the exporter
}
_TYPE: Schema = {1: Field("tensor", "message")}
_TENSOR_TYPE: Schema = {1: Field("element", "number"), 2: Field("shape", "message")}
_SHAPE: Schema = {1: Field("sizes", "message", many=True)}
_SIZE: Schema = {1: Field("number", "number"), 2: Field("symbol", "text")}
_EMPTY = memoryview(b"")


@dataclass(frozen=True, slots=True)
class Value:
    """An input or output of a graph; a size of None is one that a run decides."""

    name: str
    element: int
    shape: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """An initialiser: `inline_bytes` are in the graph, or `external` says where they are."""

    name: str
    element: int
    shape: tuple[int, ...]
    inline_bytes: int
    external: dict[str, str] | None


@dataclass(frozen=True, slots=True)
class Node:
    """A node with the numbers and the graph among its attributes."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    numbers: dict[str, int]
    body: "Graph | None"


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph, which may be the body of a node of another."""

    nodes: tuple[Node, ...]
    tensors: tuple[Tensor, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


def read_graph(content: bytes) -> Graph:
    """The graph of an ONNX file. Raises `WireError` for what is not one, or has more to it."""
    model = read_message(memoryview(content), _MODEL)
    domains = [read_message(opset, _OPSET)["domain"] or "" for opset in model["opsets"]]
    if domains != [""]:
        raise WireError(f"operators of domains {domains}; they must be ONNX's own")
    return _graph(model["graph"] or _EMPTY, nested=False)


def _graph(data: memoryview, *, nested: bool) -> Graph:
    graph = read_message(data, _GRAPH)
    return Graph(
        tuple(_node(node, nested=nested) for node in graph["nodes"]),
        tuple(map(_tensor, graph["tensors"])),
        tuple(map(_value, graph["inputs"])),
        tuple(map(_value, graph["outputs"])),
    )


def _node(data: memoryview, *, nested: bool) -> Node:
    node = read_message(data, _NODE)
    operator = node["operator"] or ""
    if node["domain"]:
        raise WireError(f"operator {operator} of domain {node['domain']}; it must be ONNX's own")
    numbers, bodies = {}, []
    for attribute in (read_message(a, _ATTRIBUTE) for a in node["attributes"]):
        if attribute["number"] is not None:
            numbers[attribute["name"] or ""] = attribute["number"]
        if attribute["graph"] is not None:
            bodies.append(attribute["graph"])
    if bodies and (nested or len(bodies) > 1):
        raise WireError(f"{operator} has a graph within a graph, or two of them")
    body = _graph(bodies[0], nested=True) if bodies else None
    return Node(operator, tuple(node["inputs"]), tuple(node["outputs"]), numbers, body)


def _tensor(data: memoryview) -> Tensor:
    tensor = read_message(data, _TENSOR)
    external = None
    if tensor["location"] or tensor["external"]:
        entries = [read_message(entry, _ENTRY) for entry in tensor["external"]]
        external = {entry["key"] or "": entry["value"] or "" for entry in entries}
    return Tensor(
        tensor["name"] or "",
        tensor["element"] or 0,
        tuple(tensor["shape"]),
        len(tensor["content"] or _EMPTY),
        external,
    )


def _value(data: memoryview) -> Value:
    value = read_message(data, _VALUE)
    tensor = read_message(value["type"] or _EMPTY, _TYPE)["tensor"]
    described = read_message(tensor or _EMPTY, _TENSOR_TYPE)
    sizes = read_message(described["shape"] or _EMPTY, _SHAPE)["sizes"]
    shape = tuple(map(_size, sizes))
    return Value(value["name"] or "", described["element"] or 0, shape)


def _size(data: memoryview) -> int | None:
    size = read_message(data, _SIZE)
    number: int | None = size["number"]
    if number is not None and size["symbol"] is not None:  # other readers take the last
        raise WireError(f"a size is both {number} and {size['symbol']!r}")
    return number
