"""The graph of a step as that of T steps, by one ONNX Scan around it.

Inputs and outputs of each step gain T in front; weights and row inputs are seen from within.
"""

import onnx_ir as ir


def over_time(model: ir.Model, states: int, per_step: int) -> None:
    """Put a Scan around a graph whose first inputs are `states`, then those of each step, and whose
    first outputs are the states after."""
    graph = model.graph
    outer, inner = list(graph.inputs), []
    for value in outer[: states + per_step]:
        before = ir.Value(name=f"{value.name}_now", shape=value.shape, type=value.type)
        ir.convenience.replace_all_uses_with(value, before)
        inner.append(before)
    for value in outer[states : states + per_step]:
        value.shape = _timed(value)
    found = list(graph.outputs)
    after = [
        ir.Value(name=v.name, shape=v.shape if i < states else _timed(v), type=v.type)
        for i, v in enumerate(found)
    ]
    for value in found:
        value.name = f"{value.name}_now"
    nodes = list(graph)
    graph.outputs.clear()
    graph.remove(nodes)
    body = ir.Graph(inner, found, nodes=nodes, name="step")
    scan = ir.node(
        "Scan",
        outer[: states + per_step],
        {"body": body, "num_scan_inputs": per_step},
        outputs=after,
    )
    graph.append(scan)
    graph.outputs.extend(after)


def _timed(value: ir.Value) -> ir.Shape:
    assert value.shape is not None, f"{value.name} has no shape"
    return ir.Shape(["T", *value.shape])
