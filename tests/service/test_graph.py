"""A graph that could do harm never reaches onnxruntime."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, TensorShapeProto, helper, numpy_helper

from export.graph import INTEGER, ROW_INDEPENDENT
from service import harmless
from service.artifact import ArtifactError, load_artifact
from service.graph import _size, _tensor, read_graph
from service.harmless import OPERATORS
from service.protobuf import Field, WireError, read_message
from tests.service.altered import copy_of, edit_manifest, rehash

_SHIPPED = sorted((Path(__file__).parents[2] / "artifacts").glob("*/*.onnx"))


def _refused(artifact: Path, edit: Callable[[ModelProto], object], name: str = "model.onnx") -> str:
    """The error for an artifact one of whose graphs was edited, its hash corrected."""
    model = onnx.load(artifact / name, load_external_data=False)
    edit(model)
    (artifact / name).write_bytes(model.SerializeToString())
    rehash(artifact)
    started = time.monotonic()
    with pytest.raises(ArtifactError) as caught:
        load_artifact(artifact)
    assert time.monotonic() - started < 10
    assert str(artifact / name) in str(caught.value)
    return str(caught.value)


def _scan(model: ModelProto) -> NodeProto:
    return next(node for node in model.graph.node if node.op_type == "Scan")


def _constant(model: ModelProto, name: str, value: object) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.array(value), name))


def _weight(model: ModelProto) -> TensorProto:
    return next(t for t in model.graph.initializer if t.external_data)


def _point(model: ModelProto, **entries: str) -> None:
    """Change where a weight lies."""
    for entry in _weight(model).external_data:
        entry.value = entries.get(entry.key, entry.value)


@pytest.mark.parametrize("path", _SHIPPED, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_reader_finds_what_onnx_does(path: Path) -> None:
    mine, theirs = read_graph(path.read_bytes()), onnx.load(path, load_external_data=False).graph
    assert [n.operator for n in mine.nodes] == [n.op_type for n in theirs.node]
    assert [n.inputs for n in mine.nodes] == [tuple(n.input) for n in theirs.node]
    assert [v.name for v in (*mine.inputs, *mine.outputs)] == [
        v.name for v in (*theirs.input, *theirs.output)
    ]
    for found, tensor in zip(mine.tensors, theirs.initializer, strict=True):
        assert (found.name, found.shape, found.element) == (
            tensor.name,
            tuple(tensor.dims),
            tensor.data_type,
        )
        entries = {entry.key: entry.value for entry in tensor.external_data}
        assert (found.external or {}, found.inline_bytes) == (entries, len(tensor.raw_data))


def test_operators_are_those_that_are_exported() -> None:
    assert ROW_INDEPENDENT - {"Constant", "Expand"} == OPERATORS
    assert harmless.INTEGER == INTEGER


@pytest.mark.parametrize("operator", ["Loop", "If", "Expand", "ConstantOfShape", "Tile", "Range"])
def test_an_operator_that_is_not_exported_is_refused(copy: Path, operator: str) -> None:
    def edit(model: ModelProto) -> None:
        model.graph.node.append(helper.make_node(operator, ["token"], ["more"]))

    assert f"operator '{operator}' is not one that is served" in _refused(copy, edit)


def test_an_operator_in_the_body_of_the_scan_is_looked_at_too(copy: Path) -> None:
    def edit(model: ModelProto) -> None:
        _scan(model).attribute[0].g.node[0].op_type = "Loop"

    assert "operator 'Loop' is not one that is served" in _refused(copy, edit)


def test_operators_of_integers_are_refused_where_there_are_none(copy: Path) -> None:
    def edit(model: ModelProto) -> None:
        model.graph.node.append(helper.make_node("MatMulInteger", ["token", "token"], ["more"]))

    assert "operator 'MatMulInteger' is not one that is served" in _refused(copy, edit)


def test_a_loop_bomb_is_refused_at_once(copy: Path) -> None:
    def edit(model: ModelProto) -> None:
        body = helper.make_graph([], "body", [], [])
        _constant(model, "forever", 1 << 62)
        model.graph.node.append(helper.make_node("Loop", ["forever"], ["end"], body=body))

    assert "operator 'Loop'" in _refused(copy, edit)


def test_a_second_scan_or_one_over_the_files_own_data_is_refused(copy: Path) -> None:
    def twice(model: ModelProto) -> None:
        model.graph.node.append(_scan(model))

    def over_state(model: ModelProto) -> None:
        scan = _scan(model)
        scan.input[-1] = "token"

    assert "2 Scan nodes; there must be 1" in _refused(copy_of(copy, copy.parent / "a"), twice)
    assert "the Scan is not over the inputs of each step" in _refused(copy, over_state)


def test_a_scan_in_the_graph_of_one_step_is_refused(copy: Path) -> None:
    scan = _scan(onnx.load(copy / "model.onnx", load_external_data=False))
    assert "1 Scan nodes; there must be 0" in _refused(
        copy, lambda model: model.graph.node.append(scan), "step.onnx"
    )


def test_a_scan_within_a_scan_is_refused(copy: Path) -> None:
    def edit(model: ModelProto) -> None:
        inner = NodeProto()
        inner.CopyFrom(_scan(model))
        _scan(model).attribute[0].g.node.append(inner)

    assert "a graph within a graph" in _refused(copy, edit)


def test_a_scan_with_two_bodies_is_refused(copy: Path) -> None:
    def edit(model: ModelProto) -> None:
        other = helper.make_attribute("other", _scan(model).attribute[0].g)
        _scan(model).attribute.append(other)

    assert "or two of them" in _refused(copy, edit)


@pytest.mark.parametrize("place", ["graph", "body"])
def test_what_onnxruntime_would_compute_while_it_loads_is_refused(copy: Path, place: str) -> None:
    def edit(model: ModelProto) -> None:
        _constant(model, "column", np.zeros((500, 1), np.float32))
        _constant(model, "line", np.zeros((1, 500), np.float32))
        graph = model.graph if place == "graph" else _scan(model).attribute[0].g
        graph.node.append(helper.make_node("Add", ["column", "line"], ["large"]))

    assert "Add ('large',) is computed from constants alone" in _refused(copy, edit)


def test_a_split_into_more_than_its_parts_does_not_end_the_process(copy: Path) -> None:
    def edit(model: ModelProto) -> None:
        nodes = _scan(model).attribute[0].g.node
        next(node for node in nodes if node.op_type == "Split").output.append("more")

    assert "has not that many parts" in _refused(copy, edit)


def _domain(model: ModelProto) -> None:
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def _domain_twice(model: ModelProto) -> None:
    model.opset_import.append(model.opset_import[0])


def _node_domain(model: ModelProto) -> None:
    model.graph.node[0].domain = "com.microsoft"


def _body_domain(model: ModelProto) -> None:
    _scan(model).attribute[0].g.node[0].domain = "com.microsoft"


def _function(model: ModelProto) -> None:
    model.functions.append(helper.make_function("", "F", [], [], [], model.opset_import))


def _sparse(model: ModelProto) -> None:
    model.graph.sparse_initializer.add()


def _attribute_tensor(model: ModelProto) -> None:
    value = numpy_helper.from_array(np.zeros(3))
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=value))


_PARTS = (_domain, _domain_twice, _node_domain, _body_domain, _function, _sparse, _attribute_tensor)


@pytest.mark.parametrize("edit", _PARTS)
def test_parts_of_onnx_that_no_exported_graph_has_are_refused(
    copy: Path, edit: Callable[[ModelProto], None]
) -> None:
    assert "is not one of" in (message := _refused(copy, edit)) or "must be ONNX's own" in message


def test_operators_of_no_domain_that_is_named_are_onnx_s_own(artifacts: Path) -> None:
    content = (artifacts / "letters" / "model.onnx").read_bytes()
    model = onnx.load_from_string(content)
    model.opset_import[0].ClearField("domain")
    assert read_graph(model.SerializeToString()) == read_graph(content)


def test_nothing_more_is_said_of_where_a_tensor_lies(copy: Path) -> None:
    def edit(model: ModelProto) -> None:
        _weight(model).external_data.add(key="checksum", value="0")

    assert "is no place in one of: model.safetensors" in _refused(copy, edit)


@pytest.mark.parametrize(
    "entries",
    [
        {"location": "unlisted.safetensors"},
        {"location": "../letters/model.safetensors"},
        {"location": "/etc/passwd"},
        {"location": "golden.safetensors"},
        {"offset": "-8"},
        {"offset": "99999999999"},
        {"offset": "9" * 30},
        {"offset": "²"},
        {"length": "4"},
        {"length": ""},
    ],
)
def test_weights_come_only_from_bytes_that_have_a_hash(copy: Path, entries: dict[str, str]) -> None:
    (copy / "unlisted.safetensors").write_bytes((copy / "model.safetensors").read_bytes())
    _refused(copy, lambda model: _point(model, **entries))


@pytest.mark.parametrize("shape", [[1 << 40], [-3], [0], [1 << 62] * 9, [1 << 63 - 1] * 2])
@pytest.mark.parametrize("external", [False, True])
def test_a_tensor_has_the_bytes_of_its_shape(copy: Path, shape: list[int], external: bool) -> None:
    def edit(model: ModelProto) -> None:
        tensors = [t for t in model.graph.initializer if bool(t.external_data) == external]
        tensors[0].dims[:] = shape

    assert "tensor " in _refused(copy, edit)


def test_weights_are_not_multiplied_by_naming_them_often(copy: Path) -> None:
    def edit(model: ModelProto) -> None:
        weight = max(model.graph.initializer, key=lambda t: np.prod(t.dims) * len(t.external_data))
        for index in range(50):
            model.graph.initializer.append(weight)
            model.graph.initializer[-1].name = f"copy {index}"

    assert "of the files, which have fewer" in _refused(copy, edit)


def _rename(model: ModelProto) -> None:
    model.graph.input[0].name = "other"


def _reshape(model: ModelProto) -> None:
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_value = 47


def _retype(model: ModelProto) -> None:
    model.graph.output[-1].type.tensor_type.elem_type = TensorProto.DOUBLE


def _drop(model: ModelProto) -> None:
    del model.graph.output[-1]


def _add(model: ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("extra", TensorProto.FLOAT, ["B"]))


@pytest.mark.parametrize("edit", [_rename, _reshape, _retype, _drop, _add])
@pytest.mark.parametrize("name", ["model.onnx", "step-filtered.onnx"])
def test_inputs_and_outputs_are_the_ports_of_the_manifest(
    copy: Path, name: str, edit: Callable[[ModelProto], None]
) -> None:
    assert "are not the manifest's ports" in _refused(copy, edit, name)


@pytest.mark.parametrize(("runner", "file"), [("scan", "step.onnx"), ("cuda", "model.onnx")])
def test_graphs_of_the_wrong_runner_are_refused(copy: Path, runner: str, file: str) -> None:
    edit_manifest(copy, lambda m: m["graphs"].setdefault(runner, {}).update(plain=file))
    with pytest.raises(ArtifactError, match=rf"{file}: inputs are not the manifest's ports"):
        load_artifact(copy)


def test_a_number_has_64_bits_and_a_sign() -> None:
    def read(last: bytes) -> int:
        content = memoryview(b"\x08" + b"\xff" * 9 + last)
        number: int = read_message(content, {1: Field("it", "number")})["it"]
        return number

    assert read(b"\x01") == -1
    with pytest.raises(WireError, match="more than 64 bits"):
        read(b"\x02")
    for least in (b"\x80" * 9 + b"\x02", b"\x80" * 10 + b"\x00"):  # 2 ** 64, and 0 in 11 bytes
        with pytest.raises(WireError, match="more than 64 bits"):
            read_message(memoryview(b"\x08" + least), {1: Field("it", "number")})


def test_what_has_fewer_bytes_than_none_is_cut_short() -> None:
    """Whoever goes on there comes back to where it has been."""
    content = memoryview(b"\x0a" + b"\xff" * 9 + b"\x01")
    with pytest.raises(WireError, match="byte 11: -1 bytes should follow"):
        read_message(content, {1: Field("it", "text")})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x0a\x01a\x0a\x01b", "it stands more than once"),
        (b"\x0a\x00\x0a\x01b", "it stands more than once"),
        (b"\x0a\x01\xff", "is not UTF-8"),
        (b"\x0a\x03ab", "cut short at byte 2: 3 bytes should follow"),
        (b"\x0dabcd", "it is not a text"),
        (b"\x0b\x0a\x01a\x0c", "wire type 3 at byte 1"),  # a group
    ],
)
def test_a_text_stands_once_and_is_one(content: bytes, why: str) -> None:
    """Other readers take the last of several, or put messages together, or pass over them."""
    with pytest.raises(WireError, match=why):
        read_message(memoryview(content), {1: Field("it", "text")})


def test_a_number_that_stands_once_is_not_packed() -> None:
    """Others pass over it, as over any field of another type: a size of 48 is none to them."""
    packed, plain = memoryview(b"\x0a\x01\x30"), memoryview(b"\x08\x30")
    schema = {1: Field("it", "number")}
    assert read_message(plain, schema) == {"it": 48}
    assert not TensorShapeProto.Dimension.FromString(bytes(packed)).HasField("dim_value")
    with pytest.raises(WireError, match="it is not a number"):
        read_message(packed, schema)
    many = {1: Field("it", "number", many=True)}
    assert read_message(packed, many) == read_message(plain, many) == {"it": [48]}
    assert read_message(memoryview(b"\x0a\x14" + bytes(range(20))), many) == {"it": [*range(20)]}


def test_a_size_is_a_number_or_a_symbol() -> None:
    """Of both, others take the last."""
    assert _size(memoryview(b"\x08\x30")) == 48
    assert _size(memoryview(b"\x12\x01B")) is None
    for symbol in (b"B", b""):
        both = b"\x08\x30\x12" + bytes([len(symbol)]) + symbol
        assert not TensorShapeProto.Dimension.FromString(both).HasField("dim_value")
        with pytest.raises(WireError, match=f"both 48 and '{symbol.decode()}'"):
            _size(memoryview(both))


def test_a_tensor_that_lies_elsewhere_says_where() -> None:
    """Even one that has bytes of its own: onnxruntime goes by what is said of its place."""
    tensor = numpy_helper.from_array(np.zeros(4, np.float32), "w")
    assert _tensor(memoryview(tensor.SerializeToString())).external is None
    tensor.data_location = TensorProto.EXTERNAL
    found = _tensor(memoryview(tensor.SerializeToString()))
    assert (found.external, found.inline_bytes) == ({}, 16)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x3a",  # a field without its length
        b"\x3a\xff\xff\xff\xff\x0f",  # a graph of 4 GB
        b"\x3a" + b"\xff" * 9 + b"\x01",  # of a negative number of bytes
        b"\x08" + b"\xff" * 11,  # a number that does not end
        b"\x0b\x0b\x0b",  # a group
        b"\x3a\x00\x3a\x00",  # two graphs
        b"\x3a\x02\x0a\x80" + b"\x0a\x02" * 10**5,
        b"\x7a\x80" * 10**5,
    ],
)
def test_what_is_no_graph_is_refused_with_a_reason(copy: Path, content: bytes) -> None:
    (copy / "model.onnx").write_bytes(content)
    rehash(copy)
    with pytest.raises(ArtifactError, match=r"model\.onnx: ."):
        load_artifact(copy)
