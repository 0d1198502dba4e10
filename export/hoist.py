"""Moves in front of a Scan what it would compute again at every step from unchanging inputs."""

import onnx_ir as ir


def hoist(model: ir.Model) -> None:
    """Loop-invariant nodes of every Scan body go before the Scan: once a chunk, not once a step.

    The values are the same, so are their bits. A node that is itself an output of the body stays.
    """
    for scan in [node for node in model.graph if node.op_type == "Scan"]:
        body = scan.attributes["body"].as_graph()
        changing = set(body.inputs)
        for node in list(body):
            if changing.isdisjoint(node.inputs) and not any(
                v.is_graph_output() for v in node.outputs
            ):
                body.remove(node)
                model.graph.insert_before(scan, node)
            else:
                changing.update(node.outputs)
