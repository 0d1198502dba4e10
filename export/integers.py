"""Products with matrices of eight bits, as an exported graph carries them out: in integers.

Every input is written as a number of several digits, each a byte; the digits are rows of one
product of integers, which reads the matrix once, and its sums are put together again in floats.
Integers have no order of summation to lose, and three digits of an input between -1 and 1 leave out
less than float32 tells numbers above 1 apart by. Shapes: B rows, P digits, K inputs, N outputs.
"""

import math
from collections.abc import Container, Iterator

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from contract.integers import LARGEST_INPUT
from models.quantized import integer_matrices

# On x86 onnxruntime has fast kernels for unsigned inputs alone, on CUDA for signed ones alone.
_MIDDLE = {False: np.array(128, np.uint8), True: np.array(0, np.int8)}
# What a digit may be either way, and the part of it that the next one has to cover.
_DIGIT, _REST = 127, 254
# cuBLAS multiplies by a matrix of bytes only where its columns are a multiple of so many; another
# stands there with columns of zeros. One of fewer rows than these it refuses for most numbers of
# inputs; it stands there in floats, whose sums of so few products of bytes have no rounding.
MULTIPLE, LEAST_ROWS = 4, 128
_ALIGNED, _IN_FLOATS = "_aligned", "_in_floats"  # how the names of the copies end
# Digits of a hidden unit and of any other input, so that what they leave out is below 2**-23; a
# graph in float64, which only a parity report makes, takes more.
_DIGITS, _MORE_DIGITS = {True: 3, False: 4}, 4
# Of the worth of a digit, so that a digit times it has no rounding in float32.
_MANTISSA_BITS = 6


def integer_products(graph: ir.Model, model: nn.Module, *, signed: bool) -> dict[str, list[str]]:
    """Replace every Gemm whose matrix the model has as integers; returns what stands for which
    matrix, of the model or `cuda_copies`. The digits are unsigned bytes, or `signed`."""
    copies = cuda_copies(model, graph.graph.initializers) if signed else {}
    tensors = model.state_dict() | copies
    where = integer_matrices(model)
    replaced: dict[str, list[str]] = {}
    for node in [n for n in graph.graph.all_nodes() if n.op_type == "Gemm"]:
        assert node.inputs[1] is not None
        name = str(node.inputs[1].name)
        if name not in where:
            continue
        names = [f"{where[name]}{part}" for part in "01"]
        names[0] += next((end for end in (_ALIGNED, _IN_FLOATS) if names[0] + end in copies), "")
        whole, unit = (_constant(graph, n, tensors[n].numpy()) for n in names)
        hidden = name in model.hidden_inputs()  # type: ignore[operator]
        _replace(node, _product(graph, node, whole, unit, hidden=hidden, signed=signed))
        del graph.graph.initializers[name]
        replaced[name] = names
    return replaced


def cuda_copies(model: nn.Module, matrices: Container[str]) -> dict[str, Tensor]:
    """Of the integers `(K, N)` of these matrices of a model those by which cuBLAS does not multiply
    as they are: with columns of zeros after their own, or in float32."""
    copies = {}
    for matrix, name in integer_matrices(model).items():
        if matrix not in matrices:
            continue
        whole = model.get_parameter(f"{name}0").detach()
        rows, columns = whole.shape
        if rows < LEAST_ROWS:
            copies[f"{name}0{_IN_FLOATS}"] = whole.float()
        elif columns % MULTIPLE:
            copies[f"{name}0{_ALIGNED}"] = functional.pad(whole, (0, -columns % MULTIPLE))
    return copies


def worths(largest: float, digits: int) -> list[float]:
    """What a unit of each digit is worth, for numbers up to `largest` either way."""
    found = []
    for _ in range(digits):
        found.append(_round_up(largest / _DIGIT))
        largest = found[-1] * _DIGIT / _REST
    return found


def _round_up(worth: float) -> float:
    mantissa, exponent = math.frexp(worth)
    return math.ldexp(math.ceil(math.ldexp(mantissa, _MANTISSA_BITS)), exponent - _MANTISSA_BITS)


class _Nodes(list[ir.Node]):
    """Nodes in the order they are added, of a graph that computes in `real` numbers."""

    def __init__(self, graph: ir.Model, real: type[np.floating]) -> None:
        super().__init__()
        self._graph, self._real = graph, real

    def add(self, operator: str, *inputs: ir.Value | None, **attributes: int) -> ir.Value:
        """One more node; returns its output."""
        self.append(ir.node(operator, inputs, attributes=attributes))
        return self[-1].outputs[0]

    def cast(self, value: ir.Value, to: ir.DataType) -> ir.Value:
        """A value as another type."""
        return self.add("Cast", value, to=int(to))

    def number(
        self,
        value: float | list[int] | list[list[float]],
        dtype: type[np.generic] | None = None,
    ) -> ir.Value:
        """A constant of the graph, real unless told otherwise."""
        content = np.array(value, dtype or self._real)
        return _constant(self._graph, f"{content.dtype}_{value}", content)


def _product(
    graph: ir.Model, gemm: ir.Node, whole: ir.Value, unit: ir.Value, *, hidden: bool, signed: bool
) -> list[ir.Node]:
    """The nodes that compute what a Gemm does, in order; the last has the result."""
    wide = unit.dtype == ir.DataType.DOUBLE
    digits = _DIGITS[hidden] + _MORE_DIGITS * wide
    scales = worths(1.0 if hidden else LARGEST_INPUT, digits)
    nodes = _Nodes(graph, np.float64 if wide else np.float32)
    add, number = nodes.add, nodes.number
    assert gemm.inputs[0] is not None
    assert unit.const_value is not None
    middle = _constant(graph, "signed" if signed else "unsigned", _MIDDLE[signed])
    outputs = unit.const_value.size
    rows = _rows(nodes, gemm.inputs[0], scales, middle, wide=wide)
    rows.type = ir.TensorType(ir.DataType.INT8 if signed else ir.DataType.UINT8)
    if whole.dtype == ir.DataType.FLOAT:
        sums = add("MatMul", nodes.cast(rows, ir.DataType.FLOAT), whole)
    else:
        sums = add("MatMulInteger", rows, whole, *(() if signed else (middle,)))
        if whole.shape is not None and whole.shape[1] != outputs:
            sums = add("Slice", sums, *(number([n], np.int64) for n in (0, outputs, 1)))
        sums = nodes.cast(sums, unit.dtype or ir.DataType.FLOAT)
    # One product puts the digits together: with rows side by side a Split and an operator for each
    # digit take as long as the product of the integers.
    digitwise = add("Reshape", sums, number([digits, -1], np.int64))  # (P, B * N)
    total = add("MatMul", number([scales]), digitwise)
    total = add("Reshape", total, number([-1, outputs], np.int64))  # (B, N)
    total = add("Mul", total, unit)
    if len(gemm.inputs) > 2:
        add("Add", total, gemm.inputs[2])
    return nodes


def _rows(
    nodes: _Nodes, x: ir.Value, scales: list[float], middle: ir.Value, *, wide: bool
) -> ir.Value:
    """The digits of inputs `(B, K)`, each as bytes of its scale around the middle: `(P * B, K)`."""
    rest, bytes_ = x, []
    for place, worth in enumerate(scales, 1):
        scale = nodes.number(worth, np.float32)
        small = nodes.cast(rest, ir.DataType.FLOAT) if wide else rest
        bytes_.append(nodes.add("QuantizeLinear", small, scale, middle))
        if place < len(scales):
            digit = nodes.add("DequantizeLinear", bytes_[-1], scale, middle)
            digit = nodes.cast(digit, ir.DataType.DOUBLE) if wide else digit
            rest = nodes.add("Sub", rest, digit)
    return nodes.add("Concat", *bytes_, axis=0)


def _replace(node: ir.Node, new: list[ir.Node]) -> None:
    owner = node.graph
    assert owner is not None
    old, result = node.outputs[0], new[-1].outputs[0]
    for number, value in enumerate(_values(new)):
        value.name = f"{old.name}_in_integers_{number}"
    result.name, result.shape, result.type = old.name, old.shape, old.type
    owner.insert_before(node, new)
    old.replace_all_uses_with(result, replace_graph_outputs=True)
    owner.remove(node, safe=True)


def _values(nodes: list[ir.Node]) -> Iterator[ir.Value]:
    for node in nodes:
        yield from node.outputs


def _constant(graph: ir.Model, name: str, content: NDArray[np.generic]) -> ir.Value:
    existing = graph.graph.initializers.get(name)
    if existing is not None:
        return existing
    tensor = ir.tensor(content, name=name)
    value = ir.Value(name=name, shape=ir.Shape(content.shape), type=ir.TensorType(tensor.dtype))
    value.const_value = tensor
    graph.graph.register_initializer(value)
    return value
