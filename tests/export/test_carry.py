"""What a Scan carries along: all that a step computes of its states twice, and nothing else."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from export.carry import carry

_FLOAT = TensorProto.FLOAT
# Of the state now and of the state after: its double and the exponential of that, which are both
# carried. What an input of the step enters, or is of other attributes or in another order, is not.
_TWICE = [
    helper.make_node("Add", ["state", "state"], ["double"]),
    helper.make_node("Exp", ["double"], ["power"]),
    helper.make_node("Mul", ["state", "x"], ["scaled"]),
    helper.make_node("Sub", ["state", "one"], ["less"]),
    helper.make_node("Cast", ["state"], ["real"], to=TensorProto.DOUBLE),
    helper.make_node("Add", ["power", "scaled"], ["sum"]),
    helper.make_node("Cast", ["real"], ["float"], to=_FLOAT),
    helper.make_node("Add", ["sum", "less"], ["both"]),
    helper.make_node("Min", ["both", "float", "double"], ["least"]),
    helper.make_node("Tanh", ["least"], ["state_after"]),
    helper.make_node("Add", ["state_after", "state_after"], ["double_after"]),
    helper.make_node("Exp", ["double_after"], ["power_after"]),
    helper.make_node("Mul", ["state_after", "x"], ["scaled_after"]),
    helper.make_node("Sub", ["one", "state_after"], ["less_after"]),
    helper.make_node("Cast", ["state_after"], ["real_after"], to=TensorProto.INT32),
    helper.make_node("Cast", ["real_after"], ["whole_after"], to=_FLOAT),
    helper.make_node("Sum", ["power_after", "scaled_after", "less_after", "whole_after"], ["y"]),
]
_CARRIED = ["Add", "Exp"]


def _model(nodes: Sequence[onnx.NodeProto] = _TWICE) -> ir.Model:
    def values(*names: str, time: tuple[str, ...] = ()) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(n, _FLOAT, [*time, "B"]) for n in names]

    body = helper.make_graph(nodes, "body", values("state", "x"), values("state_after", "y"))
    scan = helper.make_node("Scan", ["first", "xs"], ["last", "ys"], body=body, num_scan_inputs=1)
    graph = helper.make_graph(
        [scan], "graph", values("first") + values("xs", time=("T",)),
        values("last") + values("ys", time=("T",)),
        [helper.make_tensor("one", _FLOAT, [1], [1.0])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18)]
    return ir.serde.deserialize_model(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def _run(model: ir.Model, steps: int) -> list[np.ndarray]:
    proto = ir.serde.serialize_model(model)
    onnx.checker.check_model(proto)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    feeds = {
        given.name: random.normal(size=(steps, 3) if given.name == "xs" else 3).astype(np.float32)
        for given in session.get_inputs()
    }
    return session.run(None, feeds)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_what_is_computed_twice_of_a_state_is_carried_and_every_bit_stays(steps: int) -> None:
    model = _model()
    before = _run(model, steps)
    carry(model)
    assert [node.op_type for node in model.graph] == [*_CARRIED, "Scan"]
    scan = model.graph[-1]
    body = scan.attributes["body"].as_graph()
    assert len(list(body)) == len(_TWICE) - len(_CARRIED)
    assert (len(scan.inputs), len(scan.outputs)) == (4, 4)
    assert [value.name for value in model.graph.outputs] == ["last", "ys"]
    for left, right in zip(before, _run(model, steps), strict=True):
        assert left.tobytes() == right.tobytes()


def test_a_scan_that_computes_nothing_twice_stays_as_it_is(artifact: Path) -> None:
    model = ir.load(artifact / "model.onnx")
    before = ir.serde.serialize_model(model).SerializeToString(deterministic=True)
    carry(model)
    assert ir.serde.serialize_model(model).SerializeToString(deterministic=True) == before


_POWER = helper.make_node("Exp", ["state"], ["power"])
_AFTER = [
    helper.make_node("Add", ["power", "x"], ["sum"]),
    helper.make_node("Tanh", ["sum"], ["state_after"]),
]


@pytest.mark.parametrize(
    "nodes",
    [
        [_POWER, *_AFTER, helper.make_node("Exp", ["state_after"], ["y"])],
        [
            helper.make_node("Exp", ["state"], ["y"]),
            helper.make_node("Add", ["y", "x"], ["sum"]),
            _AFTER[1],
            helper.make_node("Exp", ["state_after"], ["unused"]),
        ],
        [_POWER, *_AFTER, helper.make_node("Sigmoid", ["state_after"], ["other"]),
         helper.make_node("Add", ["other", "x"], ["y"])],
    ],
    ids=["of the state after", "of the state", "another operator"],
)  # fmt: skip
def test_what_the_body_gives_out_anyway_or_computes_otherwise_is_not_carried(
    nodes: list[onnx.NodeProto],
) -> None:
    model = _model(nodes)
    before = _run(model, 5)
    carry(model)
    assert [node.op_type for node in model.graph] == ["Scan"]
    for left, right in zip(before, _run(model, 5), strict=True):
        assert left.tobytes() == right.tobytes()


def test_what_only_leads_to_what_is_carried_is_no_state() -> None:
    nodes = [
        helper.make_node("Neg", ["state"], ["less"]),
        helper.make_node("Exp", ["less"], ["power"]),
        *_AFTER,
        helper.make_node("Neg", ["state_after"], ["less_after"]),
        helper.make_node("Exp", ["less_after"], ["power_after"]),
        helper.make_node("Add", ["power_after", "x"], ["y"]),
    ]
    model = _model(nodes)
    before = _run(model, 5)
    carry(model)
    assert [node.op_type for node in model.graph] == ["Neg", "Exp", "Scan"]
    assert len(model.graph[-1].inputs) == 3
    for left, right in zip(before, _run(model, 5), strict=True):
        assert left.tobytes() == right.tobytes()
