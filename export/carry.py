"""Carries along in a Scan what a step computes of a state and the step before has computed of it.

A matrix of eight bits takes its input apart into digits. A state is read out at the end of a step
and multiplied at the start of the next one, so its digits would be made twice.
"""

from collections.abc import Set

import onnx_ir as ir

# None is an input that is left out.
_Values = dict[ir.Value | None, ir.Value | None]


def carry(model: ir.Model) -> None:
    """Nodes of a Scan body that compute of its states alone what others compute of the states after
    go before the Scan, and what they computed becomes a state of it.

    The values are the same, so are their bits.
    """
    for scan in [node for node in model.graph if node.op_type == "Scan"]:
        body = scan.attributes["body"].as_graph()
        states = len(body.inputs) - scan.attributes["num_scan_inputs"].as_int()
        outer: _Values = dict(zip(body.inputs, scan.inputs, strict=True))
        after: _Values = dict(zip(body.inputs[:states], body.outputs[:states], strict=True))
        own = {*body.inputs, *(value for node in body for value in node.outputs)}
        moved: list[ir.Node] = []
        for node in list(body):
            twin = _twin(node, after, own)
            # A value may be an output of the body once.
            if twin and not any(v.is_graph_output() for v in (*node.outputs, *twin.outputs)):
                after.update(zip(node.outputs, twin.outputs, strict=True))
                moved.append(node)
        if not moved:
            continue
        body.remove(moved)
        for node in moved:
            for place, value in enumerate(node.inputs):
                node.replace_input_with(place, outer.get(value, value))
        known = [v for node in moved for v in node.outputs if _uses(v, body)]
        for place, value in enumerate(known, states):
            now = _like(value, "now")
            for node, number in _uses(value, body):
                node.replace_input_with(number, now)
            body.inputs.insert(place, now)
            then = after[value]
            assert then is not None
            body.outputs.insert(place, then)
        model.graph.insert_before(scan, moved)
        _replace(scan, states, known)


def _twin(node: ir.Node, after: _Values, own: Set[ir.Value]) -> ir.Node | None:
    """The other node of a body that computes of states after what `node` does of states alone."""
    wanted = [after.get(value, value) for value in node.inputs]
    changing = [value for value in node.inputs if value in own]
    if not changing or any(value not in after for value in changing):
        return None
    others = {other for value in wanted if value and value in own for other in value.consumers()}
    for other in others - {node}:
        same = (node.graph, node.op_type, wanted, _attributes(node))
        if (other.graph, other.op_type, list(other.inputs), _attributes(other)) == same:
            return other
    return None


def _attributes(node: ir.Node) -> dict[str, object]:
    return {name: attribute.value for name, attribute in node.attributes.items()}


def _uses(value: ir.Value, graph: ir.Graph) -> list[tuple[ir.Node, int]]:
    return [(node, place) for node, place in value.uses() if node.graph is graph]


def _like(value: ir.Value, when: str) -> ir.Value:
    return ir.Value(name=f"{value.name}_{when}", shape=value.shape, type=value.type)


def _replace(scan: ir.Node, states: int, known: list[ir.Value]) -> None:
    """Put a Scan in the place of another whose body has more states since, which begin as `known`;
    where they end, nobody asks."""
    graph = scan.graph
    assert graph is not None
    inputs = [*scan.inputs[:states], *known, *scan.inputs[states:]]
    outputs = [ir.Value(name=v.name, shape=v.shape, type=v.type) for v in scan.outputs]
    ir.convenience.replace_all_uses_with(scan.outputs, outputs, replace_graph_outputs=True)
    outputs[states:states] = [_like(value, "last") for value in known]
    graph.remove(scan)
    graph.append(ir.node("Scan", inputs, dict(scan.attributes), outputs=outputs))
