"""What no graph may be, rule by rule; whole artifacts are looked at in `test_graph.py`."""

import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from service.graph import (
    _ATTRIBUTE,
    _GRAPH,
    _MODEL,
    _NODE,
    _TENSOR,
    _TYPE,
    Graph,
    Node,
    Tensor,
    Value,
)
from service.harmless import (
    OPERATORS,
    GraphError,
    _check_nodes,
    _check_scans,
    _check_tensors,
    _check_values,
)

_SIZES = {"weights": 40}
_NO_GRAPH = Graph((), (), (), ())


def _lying(offset: int, length: int = 16) -> Tensor:
    """Four numbers in a file."""
    entries = {"location": "weights", "offset": str(offset), "length": str(length)}
    return Tensor("w", 1, (length // 4,), 0, entries)


def _node(operator: str, body: Graph | None = None) -> Node:
    return Node(operator, ("x",), ("y",), {}, body)


def test_weights_lie_within_their_file_to_the_last_byte() -> None:
    _check_tensors([_lying(24)], _SIZES)
    for offset in (25, 40, 41, 10**18 - 1):
        with pytest.raises(GraphError, match="beyond the end of the file"):
            _check_tensors([_lying(offset)], _SIZES | {"derived": 40})


def test_tensors_take_as_many_bytes_as_the_files_have_and_no_more() -> None:
    _check_tensors([_lying(0), _lying(16), _lying(32, 8)], _SIZES)
    with pytest.raises(GraphError, match="tensors take 44 bytes of the files, which have fewer"):
        _check_tensors([_lying(0), _lying(16), _lying(28, 12)], _SIZES)


@pytest.mark.parametrize("text", ["9" * 19, "1_0", "+8", " 8", "\N{SUPERSCRIPT TWO}", ""])
def test_a_place_is_a_plain_number(text: str) -> None:
    entries = {"location": "weights", "offset": text, "length": "16"}
    with pytest.raises(GraphError, match="is not a number of bytes"):
        _check_tensors([Tensor("w", 1, (4,), 0, entries)], _SIZES)


def test_a_tensor_has_few_dimensions() -> None:
    _check_tensors([Tensor("w", 1, (1,) * 8, 4, None)], _SIZES)
    with pytest.raises(GraphError, match="of at most 8 dimensions"):
        _check_tensors([Tensor("w", 1, (1,) * 9, 4, None)], _SIZES)


def test_a_graph_in_a_node_is_that_of_a_scan_and_has_no_tensors() -> None:
    _check_nodes(Graph((_node("Scan", _NO_GRAPH),), (), (), ()), {}, OPERATORS)
    heavy = Graph((), (Tensor("w", 1, (4,), 16, None),), (), ())
    for node in (_node("Scan", heavy), _node("Add", _NO_GRAPH)):
        with pytest.raises(GraphError, match="only a Scan may have one"):
            _check_nodes(Graph((node,), (), (), ()), {}, OPERATORS)


def test_no_port_stands_twice() -> None:
    port = Value("x", 1, (None, 4))
    _check_values("inputs", [port], [port])
    with pytest.raises(GraphError, match="one stands twice"):
        _check_values("inputs", [port, port], [port])


def test_two_tensors_have_two_names() -> None:
    tensor = Tensor("w", 1, (4,), 16, None)
    with pytest.raises(GraphError, match="two tensors have one name"):
        _check_nodes(Graph((), (tensor, tensor), (), ()), {"w": tensor}, OPERATORS)


@pytest.mark.parametrize("inputs", [(), ("",), ("w",), ("w", "", "w")])
def test_a_node_has_an_input_that_is_no_constant(inputs: tuple[str, ...]) -> None:
    """One that is left out has no name."""
    tensor = Tensor("w", 1, (4,), 16, None)

    def check(inputs: tuple[str, ...]) -> None:
        node = Node("Slice", inputs, ("y",), {}, None)
        _check_nodes(Graph((node,), (tensor,), (), ()), {"w": tensor}, OPERATORS)

    check(("x", *inputs))
    with pytest.raises(GraphError, match="is computed from constants alone"):
        check(inputs)


def test_the_parts_of_a_split_stand_in_a_line() -> None:
    split = Graph((Node("Split", ("x", "w"), ("y", "z"), {}, None),), (), (), ())
    _check_nodes(split, {"w": Tensor("w", 7, (2,), 16, None)}, OPERATORS)
    for shape in ((3,), (2, 1), ()):
        with pytest.raises(GraphError, match="has not that many parts"):
            _check_nodes(split, {"w": Tensor("w", 7, shape, 16, None)}, OPERATORS)


def test_a_graph_has_no_more_nodes_than_are_soon_loaded() -> None:
    node = _node("Neg")
    _check_nodes(Graph((node,) * 4096, (), (), ()), {}, OPERATORS)
    long = Graph((node,) * 4097, (), (), ())
    for graph in (long, Graph((_node("Scan", long),), (), (), ())):
        with pytest.raises(GraphError, match="4097 nodes; there may be 4096"):
            _check_nodes(graph, {}, OPERATORS)


def test_a_scan_is_over_the_steps_and_over_nothing_else() -> None:
    for over, inputs in ((1, ("x", "w")), (2, ("x", "w")), (0, ("x",)), (2, ("w", "x"))):
        scan = Node("Scan", inputs, ("y",), {"num_scan_inputs": over}, _NO_GRAPH)
        with pytest.raises(GraphError, match="not over the inputs of each step"):
            _check_scans([scan], {"x"}, 1)
    _check_scans([Node("Scan", ("w", "x"), ("y",), {"num_scan_inputs": 1}, _NO_GRAPH)], {"x"}, 1)


# Where ONNX keeps data or operators that the rules above would not see.
_UNSEEN = [
    (_MODEL, ModelProto, "training_info functions"),
    (_GRAPH, GraphProto, "sparse_initializer"),
    (_NODE, NodeProto, "overload"),
    (
        _ATTRIBUTE,
        AttributeProto,
        "s t sparse_tensor tp floats strings tensors graphs ref_attr_name",
    ),
    (_ATTRIBUTE, AttributeProto, "sparse_tensors type_protos"),
    (_TENSOR, TensorProto, "segment float_data int32_data string_data int64_data double_data"),
    (_TENSOR, TensorProto, "uint64_data"),
    (_TYPE, TypeProto, "sequence_type map_type optional_type sparse_tensor_type"),
]


def test_nothing_is_passed_over_that_may_hold_data_or_operators() -> None:
    for schema, message, names in _UNSEEN:
        numbers = {message.DESCRIPTOR.fields_by_name[name].number for name in names.split()}
        assert not numbers & schema.keys()
