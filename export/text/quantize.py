"""Matrix products of an exported graph in 8 bits: Gemm becomes QuantizeLinear and MatMulInteger.

`QuantizedLanguageModel` is the same computation in PyTorch; `verify` compares the two.
"""

import numpy as np
import onnx_ir as ir
from torch import Tensor

from models.language import LanguageModel
from models.quantized import ZERO_POINT, input_scales, integers


def derived_tensors(model: LanguageModel, *, folded: bool) -> dict[str, Tensor]:
    """For each quantised matrix its integers `(K, N)`, and what one unit of a product is worth."""
    tensors = {}
    for name, input_scale in input_scales(model, folded=folded).items():
        whole, scale = integers(model.get_parameter(name).detach())
        tensors[f"{name}.integers"] = whole.T.contiguous()
        tensors[f"{name}.scale"] = (scale.double() * input_scale).float()
    return tensors


def quantize(graph: ir.Model, model: LanguageModel, *, folded: bool) -> dict[str, list[str]]:
    """Replace every Gemm whose matrix is quantised; returns what stands for which matrix."""
    scales = input_scales(model, folded=folded)
    tensors = derived_tensors(model, folded=folded)
    zero = _constant(graph, "zero_point", np.array(ZERO_POINT, np.uint8))
    replaced: dict[str, list[str]] = {}
    for node in [n for n in graph.graph.all_nodes() if n.op_type == "Gemm"]:
        _, matrix, *bias = node.inputs
        assert matrix is not None
        if matrix.name not in scales:
            continue
        name = matrix.name
        step = _constant(graph, f"{name}.input_scale", np.array(scales[name], np.float32))
        whole = _tensor(graph, f"{name}.integers", tensors)
        worth = _tensor(graph, f"{name}.scale", tensors)
        new = [ir.node("QuantizeLinear", [node.inputs[0], step, zero])]
        new.append(ir.node("MatMulInteger", [new[-1].outputs[0], whole, zero]))
        new.append(ir.node("Cast", new[-1].outputs, attributes={"to": ir.DataType.FLOAT}))
        new.append(ir.node("Mul", [new[-1].outputs[0], worth]))
        if bias:
            new.append(ir.node("Add", [new[-1].outputs[0], bias[0]]))
        _replace(node, new)
        del graph.graph.initializers[name]
        replaced[name] = [f"{name}.integers", f"{name}.scale"]
    return replaced


def _replace(node: ir.Node, new: list[ir.Node]) -> None:
    owner = node.graph
    assert owner is not None
    old, result = node.outputs[0], new[-1].outputs[0]
    for number, one in enumerate(new[:-1]):
        one.outputs[0].name = f"{old.name}_{one.op_type}_{number}"
    result.name, result.shape, result.type = old.name, old.shape, old.type
    owner.insert_before(node, new)
    old.replace_all_uses_with(result, replace_graph_outputs=True)
    owner.remove(node, safe=True)


def _tensor(graph: ir.Model, name: str, tensors: dict[str, Tensor]) -> ir.Value:
    return _constant(graph, name, tensors[name].numpy())


def _constant(graph: ir.Model, name: str, content: np.ndarray) -> ir.Value:
    existing = graph.graph.initializers.get(name)
    if existing is not None:
        return existing
    tensor = ir.tensor(content, name=name)
    shape = ir.Shape(content.shape)
    value = ir.Value(name=name, shape=shape, type=ir.TensorType(tensor.dtype))
    value.const_value = tensor
    graph.graph.register_initializer(value)
    return value
