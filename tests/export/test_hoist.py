"""What is moved in front of a Scan: all that no step changes, and nothing that one does."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx import TensorProto, helper

from export.hoist import hoist

_FLOAT = TensorProto.FLOAT
# In the body: a square of the row and its double, neither of which changes; a sum and a product,
# which do, although one of their inputs does not, and what is computed of the sum alone.
_UNCHANGING, _CHANGING = {"Mul", "Neg"}, {"Add", "Abs", "Sub", "Identity"}


def _model() -> ir.Model:
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["row", "row"], ["square"]),
            helper.make_node("Neg", ["square"], ["negative"]),
            helper.make_node("Add", ["state", "negative"], ["sum"]),
            helper.make_node("Abs", ["sum"], ["size"]),
            helper.make_node("Sub", ["size", "x"], ["difference"]),
            helper.make_node("Identity", ["difference"], ["state_after"]),
        ],
        "body",
        [helper.make_tensor_value_info(n, _FLOAT, ["B"]) for n in ("state", "x")],
        [helper.make_tensor_value_info(n, _FLOAT, ["B"]) for n in ("state_after", "difference")],
    )
    scan = helper.make_node("Scan", ["state0", "xs"], ["last", "ys"], body=body, num_scan_inputs=1)
    graph = helper.make_graph(
        [scan],
        "graph",
        [
            helper.make_tensor_value_info("state0", _FLOAT, ["B"]),
            helper.make_tensor_value_info("xs", _FLOAT, ["T", "B"]),
            helper.make_tensor_value_info("row", _FLOAT, ["B"]),
        ],
        [
            helper.make_tensor_value_info("last", _FLOAT, ["B"]),
            helper.make_tensor_value_info("ys", _FLOAT, ["T", "B"]),
        ],
    )
    opsets = [helper.make_opsetid("", 20)]
    return ir.serde.deserialize_model(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def _run(model: ir.Model) -> list[np.ndarray]:
    proto = ir.serde.serialize_model(model)
    onnx.checker.check_model(proto)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    feeds = {name: random.normal(size=shape).astype(np.float32)
             for name, shape in (("state0", 3), ("xs", (4, 3)), ("row", 3))}  # fmt: skip
    return session.run(None, feeds)


def test_what_no_step_changes_is_computed_before_the_loop_and_the_rest_in_it() -> None:
    model = _model()
    hoist(model)
    outside = {node.op_type for node in model.graph} - {"Scan"}
    (scan,) = (node for node in model.graph if node.op_type == "Scan")
    inside = {node.op_type for node in scan.attributes["body"].as_graph()}
    assert (outside, inside) == (_UNCHANGING, _CHANGING)


def test_what_the_body_gives_out_stays_in_it() -> None:
    model = _model()
    (scan,) = model.graph
    body = scan.attributes["body"].as_graph()
    (negative,) = (node.outputs[0] for node in body if node.op_type == "Neg")
    body.outputs[1] = negative
    hoist(model)
    assert "Neg" in {node.op_type for node in body}


def test_the_results_are_the_same_bits() -> None:
    model = _model()
    before = _run(model)
    hoist(model)
    for one, other in zip(before, _run(model), strict=True):
        assert one.tobytes() == other.tobytes()
