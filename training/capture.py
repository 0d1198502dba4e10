"""The loss of a batch and its gradients: computed at once, or on a GPU replayed as a CUDA graph.

An update of a recurrent network is tens of thousands of kernels of a few µs each, and to launch one
takes longer. A graph launches all of them; one is captured for every shape of a batch.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from models.cells import State
from training.task import Batch, Task

Gradients = Callable[[Batch, State], tuple[Tensor, State]]
Shapes = tuple[torch.Size, ...]


@runtime_checkable
class Captures(Task, Protocol):
    """A task whose loss is a function of tensors of few shapes, computed on their device alone."""

    @property
    def capturable(self) -> bool:
        """Whether this one's is."""
        ...

    def padded(self, batch: Batch) -> Batch:
        """A batch of the same loss and one of few shapes."""
        ...


def gradients_of(task: Task, parameters: Iterable[torch.nn.Parameter], alone: bool) -> Gradients:
    """How an update of a task finds its loss, the state after it, and the gradients, which it
    leaves with the parameters. Processes that train together exchange what no graph can hold."""
    learned = list(parameters)
    if alone and learned[0].is_cuda and isinstance(task, Captures) and task.capturable:
        return _Captured(task, learned)
    return _AtOnce(task, learned)


class _AtOnce:
    def __init__(self, task: Task, parameters: list[torch.nn.Parameter]) -> None:
        self._task, self._parameters = task, parameters

    def __call__(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        for parameter in self._parameters:
            parameter.grad = None
        loss, after = self._task.loss(batch, state)
        loss.backward()
        return loss.detach(), tuple(tensor.detach() for tensor in after)


class _Graph(NamedTuple):
    """Captured kernels, and the memory they read and write."""

    kernels: torch.cuda.CUDAGraph
    given: list[Tensor]
    loss: Tensor
    after: State
    gradients: list[Tensor | None]


class _Captured:
    """All graphs share their memory, so what one leaves there is used up before the next runs."""

    def __init__(self, task: Captures, parameters: list[torch.nn.Parameter]) -> None:
        self._task, self._parameters = task, parameters
        self._at_once = _AtOnce(task, parameters)
        self._graphs: dict[Shapes, _Graph] = {}
        self._memory = torch.cuda.graph_pool_handle()

    def __call__(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        given = [*self._task.padded(batch), *state]
        shapes = tuple(tensor.shape for tensor in given)
        if shapes not in self._graphs:
            # Its first replay drops the units that it would have dropped at once.
            with torch.random.fork_rng(devices=[given[0].device]):
                self._graphs[shapes] = self._capture(given, len(batch))
        graph = self._graphs[shapes]
        for place, tensor in zip(graph.given, given, strict=True):
            place.copy_(tensor)
        graph.kernels.replay()
        for parameter, gradient in zip(self._parameters, graph.gradients, strict=True):
            parameter.grad = gradient
        return graph.loss.clone(), tuple(tensor.clone() for tensor in graph.after)

    def _capture(self, given: list[Tensor], batch: int) -> _Graph:
        given = [tensor.clone() for tensor in given]
        parts = tuple(given[:batch]), tuple(given[batch:])
        if not self._graphs:  # libraries choose their kernels, and take their memory, before
            beside = torch.cuda.Stream()
            beside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(beside):
                self._at_once(*parts)
            torch.cuda.current_stream().wait_stream(beside)
        for parameter in self._parameters:
            parameter.grad = None  # the graph has its own
        kernels = torch.cuda.CUDAGraph()
        with torch.cuda.graph(kernels, pool=self._memory):
            loss, after = self._at_once(*parts)
        gradients = [parameter.grad for parameter in self._parameters]
        return _Graph(kernels, given, loss, after, gradients)
