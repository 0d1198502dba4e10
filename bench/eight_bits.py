"""Peers of the quantized artifact in its own class: weights as bytes, by the tools of others.

They round otherwise and write something else, so only lengths are compared; the notes of a
measurement say from which step on it differs.
"""

import io
import logging
import warnings
from contextlib import redirect_stdout
from typing import Any

import torch
from torch import Tensor, nn

from bench.sides import Side, Step, Task, over_openvino, torch_loop


def eager(task: Task, threads: int) -> Side:
    """PyTorch's dynamic quantisation: int8 weights, inputs rounded to bytes by the range of each
    row, float32 out."""
    note = f"torch.ao dynamic, engine {torch.backends.quantized.engine}"
    return Side(torch_loop(task, _dynamic), note, "length")


def openvino(task: Task, threads: int) -> Side:
    """OpenVINO with weights that NNCF has compressed: symmetric int8, a unit for each output."""
    write = over_openvino(task, threads, _compressed)
    return Side(
        write, "LATENCY hint, weights int8 by NNCF, batch 1, sampler in the graph", "length"
    )


# By the name of a side.
BUILDERS = {"eager-int8": eager, "openvino-int8": openvino}


def _dynamic(step: nn.Module, example: tuple[Tensor, ...]) -> Step:
    """The step with every matrix product in eight bits.

    The cells have no `nn.Linear` for `quantize_dynamic` to find, so the products are replaced in
    the program that `torch.export` sees.
    """
    program: Any = torch.export.export(step, example).module()
    for number, node in enumerate(list(program.graph.nodes)):
        if node.target != torch.ops.aten.linear.default:
            continue
        given, weight, *bias = node.args
        tensors = (program.get_parameter(arg.target) for arg in (weight, *bias))
        program.add_submodule(f"product{number}", _product(*tensors))
        with program.graph.inserting_before(node):
            node.replace_all_uses_with(program.graph.call_module(f"product{number}", (given,)))
        program.graph.erase_node(node)
    program.recompile()
    quantised: Step = program
    return quantised


def _product(weight: Tensor, bias: Tensor | None = None) -> nn.Module:
    """`nn.Linear` with these weights, quantised."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    linear.weight = nn.Parameter(weight.detach())
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach())
    linear.qconfig = torch.ao.quantization.default_dynamic_qconfig  # type: ignore[assignment]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its coming removal from PyTorch
        quantised: nn.Module = torch.ao.nn.quantized.dynamic.Linear.from_float(linear)
    return quantised


def _compressed(model: Any) -> Any:
    import nncf

    nncf.set_log_level(logging.ERROR)
    with redirect_stdout(io.StringIO()):  # a bar of progress
        return nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
