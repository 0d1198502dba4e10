"""The product `W_h h` over a whole sequence, for training: the same values, a faster gradient.

Left to itself, autograd computes a gradient of W_h at every step and adds up the T of them, each as
large as W_h. Here a step only leaves behind the two factors of its gradient, and one matrix product
over many steps makes the sum.
Shapes: T time, B batch, H units, G gates.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, Variable
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

# Elements of W_h. Below, the sum of gradients is cheaper than the account kept here: on one core an
# LSTM of 256 units would lose 3%, one of 512 gains 3 to 8%, one of 1024 10%.
SMALLEST = 2**19
# Rows of a block: enough for the full speed of a matrix product, few enough to stay in the cache.
BLOCK_ROWS = 1024


def recurrent_product(weight: Tensor) -> "RecurrentProduct | None":
    """How to multiply by W_h through a sequence; None where a plain product does as well."""
    learning = torch.is_grad_enabled() and weight.requires_grad
    return RecurrentProduct(weight) if learning and weight.numel() >= SMALLEST else None


class RecurrentProduct:
    """`h (B, H)` to `W_h h (B, G*H)`; call it once for each step of one sequence."""

    def __init__(self, weight: Tensor) -> None:
        self._accounts = _Accounts()
        # Every step depends on this alias, so its backward comes after theirs.
        self._weight: Tensor = _Sum.apply(weight, self._accounts)

    def __call__(self, h: Tensor) -> Tensor:
        product: Tensor = _Step.apply(h, self._weight, self._accounts)
        return product


class _Accounts:
    """One for each backward under way: another may begin before it ends, in a checkpoint, a hook or
    a thread."""

    def __init__(self) -> None:
        self._of: dict[int, _Account] = {}

    def ours(self) -> "_Account":
        """That of the backward that asks."""
        backward = _backward()
        if backward not in self._of:
            self._of[backward] = _Account()
            # Of a backward that ends within the sequence nobody asks for the sum.
            engine: Any = Variable._execution_engine
            engine.queue_callback(lambda: self._of.pop(backward, None))
        return self._of[backward]

    def close(self) -> Tensor:
        """The gradient of W_h, by the backward that asks."""
        return self._of.pop(_backward()).total()


def _backward() -> int:
    """Which backward this is; PyTorch's checkpoints go by the same, and it has no public name."""
    number: int = torch._C._current_graph_task_id()
    return number


class _Account:
    """What the backward of the steps, last step first, leaves to that of the sum.

    Factors are multiplied a block at a time, so few of them are kept in memory.
    """

    def __init__(self) -> None:
        self._factors: list[tuple[Tensor, Tensor]] = []
        self._total: Tensor | None = None
        self._transposed: Tensor | None = None

    def add(self, gradient: Tensor, h: Tensor) -> None:
        """Note a step's `gradient (B, G*H)` of the product, and its `h (B, H)`."""
        self._factors.append((gradient, h))
        if sum(len(h) for _, h in self._factors) >= BLOCK_ROWS:
            self._multiply()

    def total(self) -> Tensor:
        """The gradient of W_h."""
        self._multiply()
        assert self._total is not None
        return self._total

    def times(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """`gradient W_h`, the gradient of h."""
        # oneDNN multiplies by a wide matrix on the left up to 18% faster than on the right.
        if self._transposed is None:
            self._transposed = weight.t().contiguous()
        return (self._transposed @ gradient.t()).t().contiguous()

    def _multiply(self) -> None:
        if not self._factors:
            return
        gradients, hs = (torch.cat(factors) for factors in zip(*self._factors, strict=True))
        self._factors.clear()
        if self._total is None:
            self._total = gradients.t() @ hs
        else:
            self._total.addmm_(gradients.t(), hs)


class _Sum(Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, accounts: _Accounts) -> Tensor:
        ctx.accounts = accounts
        ctx.set_materialize_grads(False)
        return weight.view_as(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: None) -> tuple[Tensor, None]:
        return ctx.accounts.close(), None


class _Step(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, accounts: _Accounts) -> Tensor:
        ctx.save_for_backward(h, weight)
        ctx.accounts = accounts
        return F.linear(h, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None]:
        h, weight = ctx.saved_tensors
        account = ctx.accounts.ours()
        account.add(gradient, h)
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return account.times(gradient, weight), None, None
