"""A PyTorch step as an ONNX graph whose weights are byte ranges of one safetensors file.

Three promises are checked, not hoped for: every parameter and buffer of the model is an external
initialiser under its own name, every layer normalisation is one native node, and every operator is
one whose onnxruntime CPU kernel gives a row the same bits whatever rows stand beside it.
"""

import gc
import json
import logging
import warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import onnx_ir as ir
import torch
from onnx_ir.passes import Sequential, common
from onnxscript import optimizer
from torch import nn

from export.carry import carry
from export.hoist import hoist
from export.over_time import over_time
from models.generation import Step
from models.norms import LayerNorm

# CUDA has a kernel for every operator of this opset (`cuda.toml`), not for ReduceMax of 20.
OPSET = 18

# Measured row-independent (`python -m export verify`), or exact by nature (moves and comparisons).
# ReduceSum, Log, Softplus, Sin, Cos, Atan, Elu and Mish are not: bits change with the batch size.
# MatMul is, of one row times a matrix of its own, and of a constant row times digits side by side
# (`export/integers.py`); every other product is a Gemm.
ROW_INDEPENDENT = frozenset(
    """
    Add And ArgMax Cast Concat Constant CumSum Div Equal Exp Expand Gather GatherElements Gemm
    Greater GreaterOrEqual Identity LayerNormalization Less LessOrEqual MatMul Max Min Mul Neg
    Not ReduceMax ReduceMin Reshape Scan Sigmoid Slice Split Sqrt Squeeze Sub Tanh TopK
    Transpose Unsqueeze Where
    """.split()  # noqa: SIM905
)
# The same, of integers; in graphs of models with integer matrices alone.
INTEGER = frozenset({"DequantizeLinear", "MatMulInteger", "QuantizeLinear"})
# The same, in graphs that no service runs: those of `lab`.
UNSERVED = frozenset({"Relu", "Shape", "Softmax"})
# More than this inline is a weight that was folded or copied, not a constant of the graph.
_LARGEST_CONSTANT = 16


# Changes a graph in place; says which derived tensors stand for which weight.
Rewrite = Callable[[ir.Model], dict[str, list[str]]]


class ConversionError(ValueError):
    """The exported graph breaks a promise of the artifact."""


def export_graph(step: Step, *files: Path, scan: bool, whole: nn.Module | None = None) -> ir.Model:
    """The step as one ONNX graph, over time as a Scan or alone; its weights point into `files`.

    `whole` is the model the files are of, where the step's own is a part of it; such a graph is not
    served. Raises `ConversionError` when the graph breaks a promise.
    """
    return graph_of(trace(step, whole), step, *files, scan=scan, whole=whole)


def trace(step: Step, whole: nn.Module | None = None) -> ir.Model:
    """One step as PyTorch's exporter sees it, simplified, its weights called as in `whole`, or in
    the step's own model. It takes a second or two, and any number of graphs can be made of it."""
    model = _translate(step)
    names = _weight_names(step, whole or step.model)
    _simplify(model, names.keys())
    _rename_weights(model, names)
    return model


def graph_of(
    traced: ir.Model,
    step: Step,
    *files: Path,
    scan: bool,
    rewrite: Rewrite | None = None,
    whole: nn.Module | None = None,
) -> ir.Model:
    """A graph of a traced step, which stays as it is; arguments and errors of `export_graph`.
    `rewrite` may put other tensors of the files in the place of weights, and says which."""
    model = traced.clone()
    if scan:
        over_time(model, len(step.state_ports), len(step.step_ports))
        hoist(model)
    replaced = rewrite(model) if rewrite else {}
    if replaced:
        carry(model)
    _use_files(model, files)
    unserved = None if whole is None else set(_weight_names(step, whole).values())
    check_graph(model, step, replaced, unserved)
    return model


def check_graph(
    model: ir.Model,
    step: Step,
    replaced: Mapping[str, Sequence[str]] = MappingProxyType({}),
    unserved: set[str] | None = None,
) -> None:
    """Raise `ConversionError` unless the graph keeps all three promises; `unserved` are the weights
    of a graph that is not served."""
    if model.functions:
        raise ConversionError(f"the graph hides operators in functions: {list(model.functions)}")
    nodes = list(model.graph.all_nodes())
    allowed = ROW_INDEPENDENT | INTEGER if replaced else ROW_INDEPENDENT
    allowed |= UNSERVED if unserved is not None else frozenset()
    foreign = sorted({n.op_type for n in nodes if n.domain or n.op_type not in allowed})
    if foreign:
        raise ConversionError(
            f"operators outside the allow-list: {', '.join(foreign)}; export/graph.py has the "
            "list, of those that give a row the same bits whatever stands beside it"
        )
    expected = layer_normalizations(step)
    found = sum(n.op_type == "LayerNormalization" for n in nodes)
    if found != expected:
        raise ConversionError(
            f"the graph has {found} LayerNormalization nodes, the model {expected} layer norms; "
            "each is a LayerNorm of models/norms.py, or a subclass of it"
        )
    weights = set(_weights(step.model)) if unserved is None else unserved
    derived = {name for names in replaced.values() for name in names}
    _check_initializers(model, weights - replaced.keys() | derived)


def layer_normalizations(module: nn.Module) -> int:
    """How many layer normalisations one step of the model computes."""
    return sum(isinstance(m, LayerNorm) for m in module.modules())


def _translate(step: Step) -> ir.Model:
    batch = torch.export.Dim("B", min=1, max=1 << 16)
    ports = (*step.state_ports, *step.step_ports, *step.row_ports)
    examples = tuple(torch.full((2, *p.shape), 1, dtype=p.dtype) for p in ports)
    with _quiet(), _uncollected(), torch.no_grad():
        program = torch.onnx.export(
            step.eval(),
            examples,
            input_names=[p.name for p in ports],
            output_names=[f"{p.name}_after" for p in step.state_ports]
            + [p.name for p in step.output_ports],
            dynamic_shapes=(tuple({0: batch} for _ in ports),),
            opset_version=OPSET,
            dynamo=True,
            optimize=False,
            verbose=False,
        )
    assert program is not None
    return program.model


def _simplify(model: ir.Model, weights: Container[str]) -> None:
    """Constants folded and lifted, duplicates computed once, the exporter's stack traces dropped.

    Not `optimizer.optimize`: it merges initialisers of equal content, such as two fresh gains.
    """

    def should_fold(node: ir.Node) -> bool | None:
        return False if any(v is not None and v.name in weights for v in node.inputs) else None

    optimizer.fold_constants(model, onnx_shape_inference=False, should_fold=should_fold)
    Sequential(
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        common.CommonSubexpressionEliminationPass(),
        common.RemoveUnusedNodesPass(),
        common.ClearMetadataAndDocStringPass(),
    )(model)


@contextmanager
def _uncollected() -> Iterator[None]:
    """The exporter makes so many objects that a fifth of its time goes into looking for garbage
    among those that stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's advice on packages and axes this project does not use off the screen."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _weights(module: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers, such as a batch norm's running statistics."""
    return dict(module.named_parameters()) | dict(module.named_buffers())


def _weight_names(module: nn.Module, whole: nn.Module) -> dict[str, str]:
    """From the exporter's name of an initialiser to the weight's name in the state dict."""
    names = {id(w): name for name, w in _weights(whole).items()}
    return {name: names[id(w)] for name, w in _weights(module).items()}


def _rename_weights(model: ir.Model, names: dict[str, str]) -> None:
    """Call the weights what they are called in the state dict."""
    for exported, name in names.items():
        value = model.graph.initializers.pop(exported, None)
        if value is None:
            raise ConversionError(f"weight {name} is missing from the graph")
        value.name = name
        model.graph.register_initializer(value)


def _use_files(model: ir.Model, files: Sequence[Path]) -> None:
    """Point every initialiser that one of `files` holds at its bytes there."""
    initializers = model.graph.initializers
    for path in files:
        for name, (start, end) in tensor_offsets(path).items():
            value = initializers.get(name)
            if value is None:
                continue
            assert value.dtype is not None
            assert value.shape is not None
            value.const_value = ir.ExternalTensor(
                path.name,
                start,
                end - start,
                value.dtype,
                shape=value.shape,
                name=name,
                base_dir=path.parent,
            )


def tensor_offsets(path: Path) -> dict[str, tuple[int, int]]:
    """Where each tensor of a safetensors file lies: name to (first, past last) byte of the file."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    begin = 8 + size
    return {
        name: (begin + entry["data_offsets"][0], begin + entry["data_offsets"][1])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def _check_initializers(model: ir.Model, weights: set[str]) -> None:
    external: set[str] = set()
    ranges = set()
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if isinstance(tensor, ir.ExternalTensor):
                external.add(str(value.name))
                ranges.add((tensor.location, tensor.offset, tensor.length))
            elif tensor is not None and tensor.size > _LARGEST_CONSTANT:
                raise ConversionError(f"{value.name} {tensor.shape} is inline, not in the file")
    if external != weights or len(ranges) != len(weights):
        raise ConversionError(
            f"the graph's external tensors are not the model's weights one to one: "
            f"{sorted(external ^ weights) or 'some were merged'}"
        )
    for node in model.graph.all_nodes():
        if node.op_type == "Constant":
            tensor = next(iter(node.attributes.values())).value
            if getattr(tensor, "size", 1) > _LARGEST_CONSTANT:
                raise ConversionError(f"a Constant of {tensor.shape} stands in for a weight")
