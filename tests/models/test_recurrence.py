"""The recurrent product of training against its oracle: the plain loop, left to autograd."""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

from models import recurrence
from models.cells import CELLS, State
from models.norms import NORMS
from models.quantized import round_matrices
from models.recurrence import RecurrentProduct, _Account, recurrent_product
from models.stack import Dropout, Stack, dropout_mask

T, B, E, H = 7, 3, 5, 8
Run = Callable[[Stack, Tensor, State], tuple[Tensor, State]]


@pytest.fixture(autouse=True)
def _sizes_of_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence, "SMALLEST", 1)
    monkeypatch.setattr(recurrence, "BLOCK_ROWS", 3 * B)  # T steps are two blocks and a rest


def plain(stack: Stack, x: Tensor, state: State) -> tuple[Tensor, State]:
    """What `Stack.forward` computes, with a weight gradient at every step."""
    with parametrize.cached():
        size = len(stack.cells[0].state_names)
        at = state[-1] + torch.arange(len(x)).unsqueeze(-1) if stack.counts_steps else None
        outputs, after = [], []
        for number, cell in enumerate(stack.cells):
            layer = state[number * size : (number + 1) * size]
            rate = stack.dropout.recurrent
            projected = cell.project(x, at)
            keep = dropout_mask(projected[..., : cell.units], rate) if rate else None
            hs = []
            for t in range(len(x)):
                arguments = (None if part is None else part[t] for part in (at, keep))
                layer = cell.step(projected[t], layer, *arguments)
                hs.append(layer[0])
            x = torch.stack(hs)
            outputs.append(x)
            after.extend(layer)
    return torch.cat(outputs, dim=-1), tuple(after)


def make(kind: str = "lstm", norm: str = "layer", layers: int = 2, recurrent: float = 0.0) -> Stack:
    """A stack in float64 whose every parameter is random, gains and biases too."""
    torch.manual_seed(0)
    stack = Stack(E, H, layers, kind, norm, Dropout(recurrent=recurrent)).double()
    for parameter in stack.parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64)
    return stack


def inputs(stack: Stack) -> tuple[Tensor, State]:
    torch.manual_seed(1)
    x = torch.randn(T, B, E, dtype=torch.float64, requires_grad=True)
    state = stack.initial_state(B)
    return x, tuple(
        torch.randn_like(s).requires_grad_() if s.is_floating_point() else s for s in state
    )


def value(y: Tensor, state: State) -> Tensor:
    """A number that every output has its own part in."""
    parts = [y, *(s for s in state if s.is_floating_point())]
    return sum((part * torch.linspace(-1, 2, part.numel()).view_as(part)).sum() for part in parts)


def gradients(run: Run, stack: Stack) -> tuple[Tensor, dict[str, Tensor]]:
    """The outputs, and the gradient of every parameter, the input and the state before."""
    x, state = inputs(stack)
    names = dict(stack.named_parameters()) | {"x": x}
    names |= {f"state{i}": s for i, s in enumerate(state) if s.requires_grad}
    torch.manual_seed(2)  # of the dropout masks
    y, after = run(stack, x, state)
    found = torch.autograd.grad(value(y, after), list(names.values()))
    return y, dict(zip(names, found, strict=True))


def assert_equal(ours: dict[str, Tensor], oracle: dict[str, Tensor]) -> None:
    assert ours.keys() == oracle.keys()
    for name, gradient in oracle.items():
        assert gradient.norm() > 0, name
        assert (ours[name] - gradient).norm() <= 1e-10 * gradient.norm(), name


@pytest.mark.parametrize("recurrent", [0.0, 0.25])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", list(CELLS))
def test_every_gradient_is_that_of_the_plain_loop(kind: str, norm: str, recurrent: float) -> None:
    """Parameters, inputs and initial state; two layers; outputs to the bit."""
    y, ours = gradients(Stack.forward, make(kind, norm, recurrent=recurrent))
    expected, oracle = gradients(plain, make(kind, norm, recurrent=recurrent))
    assert torch.equal(y, expected)
    assert_equal(ours, oracle)


def test_matrices_of_eight_bits_have_the_gradients_of_the_plain_loop() -> None:
    stacks = make(), make()
    for stack in stacks:
        round_matrices(stack)
    y, ours = gradients(Stack.forward, stacks[0])
    expected, oracle = gradients(plain, stacks[1])
    assert torch.equal(y, expected)
    assert_equal(ours, oracle)
    assert not torch.equal(y, gradients(plain, make())[0])  # they are rounded


@pytest.mark.parametrize("wrong", [0.0, 2.0, 1 + 1e-9])
def test_the_comparison_sees_a_weight_gradient_dropped_doubled_or_a_little_off(
    wrong: float,
) -> None:
    """What the tolerance of these tests lets pass is smaller than any such mistake."""
    _, oracle = gradients(plain, make())
    spoilt = dict(oracle)
    spoilt["cells.1.weight_h"] = wrong * oracle["cells.1.weight_h"]
    with pytest.raises(AssertionError, match=r"cells\.1\.weight_h"):
        assert_equal(spoilt, oracle)


def two_segments(run: Run) -> Run:
    """One backward through two calls, the state of the first carried into the second."""

    def both(stack: Stack, x: Tensor, state: State) -> tuple[Tensor, State]:
        first, state = run(stack, x[:4], state)
        second, state = run(stack, x[4:], state)
        return torch.cat([first, second]), state

    return both


@pytest.mark.parametrize("kind", list(CELLS))
def test_a_stack_used_twice_in_a_graph_gathers_both_gradients(kind: str) -> None:
    """Two segments of a sequence, then one backward: each call keeps its own account."""
    _, ours = gradients(two_segments(Stack.forward), make(kind))
    _, oracle = gradients(plain, make(kind))
    assert_equal(ours, oracle)


@pytest.mark.parametrize("steps", [1, T])
def test_a_second_backward_through_the_same_graph_gives_the_same(steps: int) -> None:
    """After one for the inputs alone, which leaves the weight out, and after a whole one."""
    stack = make()
    x, state = inputs(stack)
    x = x[:steps]
    weight = stack.cells[0].weight_h
    loss = value(*stack(x, state))
    torch.autograd.grad(loss, (x, state[0]), retain_graph=True)
    first, second = (torch.autograd.grad(loss, weight, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    (oracle,) = torch.autograd.grad(value(*plain(stack, x, state)), weight)
    assert (first - oracle).norm() <= 1e-10 * oracle.norm()


def stepped(with_product: bool) -> tuple[Tensor, list[Tensor], Callable[[Tensor, int], Tensor]]:
    """The recurrent matrix of a cell, its h after each step, and what goes on from one, a step."""
    cell, hs = make(layers=1).cells[0], list[Tensor]()
    torch.manual_seed(1)
    projected = cell.project(torch.randn(T, B, E, dtype=torch.float64)).detach()
    product = recurrent_product(cell.weight_h) if with_product else None
    memory = torch.ones(B, H, dtype=torch.float64)

    def on(h: Tensor, t: int) -> Tensor:
        after: Tensor = cell.step(projected[t], (h, memory), product=product)[0]
        return after

    hs.append(on(torch.zeros(B, H, dtype=torch.float64), 0))
    for t in range(1, T):
        hs.append(on(hs[-1], t))
    return cell.weight_h, hs, on


def test_how_far_a_loss_reaches_back_may_be_asked_before_an_earlier_one_is_learned_from() -> None:
    """The first backward ends within the sequence, where the second begins."""

    def learned(with_product: bool) -> Tensor:
        weight, hs, _ = stepped(with_product)
        torch.autograd.grad(hs[-1].sum(), hs[3], retain_graph=True)
        (gradient,) = torch.autograd.grad(hs[3].sum(), weight)
        return gradient

    ours, oracle = learned(with_product=True), learned(with_product=False)
    assert (ours - oracle).norm() <= 1e-10 * oracle.norm()


@pytest.mark.parametrize("within", ["checkpoint", "hook"])
def test_a_backward_within_another_leaves_that_its_own(within: str) -> None:
    """It begins after some steps of the other, and ends before the rest."""

    def learned(with_product: bool) -> list[Tensor]:
        weight, hs, on = stepped(with_product)
        inner, found = hs[2].sum(), list[Tensor]()
        last = hs[-1]
        if within == "hook":
            hs[4].register_hook(
                lambda _: found.extend(torch.autograd.grad(inner, weight, retain_graph=True))
            )
        else:
            last = on(checkpoint(on, hs[4], 5, use_reentrant=True), 6)
        last.sum().backward(retain_graph=True)
        assert weight.grad is not None
        return [weight.grad, *found]

    for ours, oracle in zip(learned(with_product=True), learned(with_product=False), strict=True):
        assert (ours - oracle).norm() <= 1e-10 * oracle.norm()


def test_backwards_of_two_threads_through_one_graph_have_each_their_own() -> None:
    """Both stand in the midst of the sequence at the same time."""
    weight, hs, _ = stepped(with_product=True)
    halfway = Barrier(2, timeout=60)
    hs[3].register_hook(lambda _: (halfway.wait(), None)[1])
    with ThreadPoolExecutor(2) as threads:
        losses = hs[-1].sum(), hs[-1].square().sum()
        asked = [
            threads.submit(torch.autograd.grad, loss, weight, retain_graph=True) for loss in losses
        ]
        found = [one.result()[0] for one in asked]
    weight, hs, _ = stepped(with_product=False)
    for ours, loss in zip(found, (hs[-1].sum(), hs[-1].square().sum()), strict=True):
        (oracle,) = torch.autograd.grad(loss, weight, retain_graph=True)
        assert (ours - oracle).norm() <= 1e-10 * oracle.norm()


def test_a_loss_that_sees_one_step_alone_has_its_gradient() -> None:
    """The steps after it add nothing."""
    stack = make()
    x, state = inputs(stack)
    weight = stack.cells[0].weight_h
    ours, oracle = (
        torch.autograd.grad(run(stack, x, state)[0][3].sum(), weight)[0]
        for run in (Stack.forward, plain)
    )
    assert (ours - oracle).norm() <= 1e-10 * oracle.norm()


def test_a_state_that_is_carried_on_counts_in_the_first_step() -> None:
    """It is detached, as between two segments of a text, and no zeros."""
    stack = make()
    x, state = inputs(stack)
    weights = [cell.weight_h for cell in stack.cells]
    carried = tuple(part.detach() for part in state)
    ours, oracle = (
        torch.autograd.grad(value(*run(stack, x, carried)), weights)
        for run in (Stack.forward, plain)
    )
    for a, b in zip(ours, oracle, strict=True):
        assert (a - b).norm() <= 1e-10 * b.norm()


def test_factors_are_kept_until_they_are_a_block_of_rows() -> None:
    """However many rows a step has: they lie in memory until then."""
    account = _Account()
    kept = []
    for _ in range(7):
        account.add(torch.ones(B, 4 * H), torch.ones(B, H))
        kept.append(len(account._factors))
    assert kept == [1, 2, 0, 1, 2, 0, 1]
    assert torch.equal(account.total(), torch.full((4 * H, H), 7.0 * B))


def test_a_gradient_of_the_gradient_is_refused() -> None:
    """Not computed wrongly: the factors of a step carry no graph of their own."""
    stack = make()
    x, state = inputs(stack)
    (first,) = torch.autograd.grad(value(*stack(x, state)), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@pytest.mark.parametrize("off", ["no_grad", "frozen"])
def test_without_a_gradient_to_learn_from_the_plain_product_runs(
    off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validation and a frozen matrix pay nothing, and get the same bits."""
    stack = make().eval()
    x, state = inputs(stack)
    expected = stack(x, state)[0]

    def refuse(*_: object) -> None:
        raise AssertionError("the product of training was used")

    monkeypatch.setattr(RecurrentProduct, "__call__", refuse)
    with pytest.raises(AssertionError, match="of training"):
        stack(x, state)
    if off == "no_grad":
        with torch.no_grad():
            assert torch.equal(stack(x, state)[0], expected)
    else:
        for cell in stack.cells:
            cell.weight_h.requires_grad_(False)
        assert torch.equal(stack(x, state)[0], expected)


def test_a_small_matrix_is_left_to_autograd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose sum of gradients is cheaper than the accounts."""
    weight = torch.zeros(8, 2, requires_grad=True)
    monkeypatch.setattr(recurrence, "SMALLEST", 17)
    assert recurrent_product(weight) is None
    monkeypatch.setattr(recurrence, "SMALLEST", 16)
    assert recurrent_product(weight) is not None


def test_a_product_is_the_linear_map_and_gives_its_gradients() -> None:
    """Alone, in float32, at sizes a training run has."""
    torch.manual_seed(0)
    weight = torch.randn(64, 16, requires_grad=True)
    hs = [torch.randn(4, 16, requires_grad=True) for _ in range(3)]
    product = RecurrentProduct(weight)
    ours = torch.stack([product(h) for h in hs])
    oracle = torch.stack([F.linear(h, weight) for h in hs])
    assert torch.equal(ours, oracle)
    for a, b in zip(
        torch.autograd.grad(ours.square().sum(), [weight, *hs]),
        torch.autograd.grad(oracle.square().sum(), [weight, *hs]),
        strict=True,
    ):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("backward", [True, False])
def test_a_graph_is_freed_without_the_garbage_collector(backward: bool) -> None:
    """No cycle holds the memory of an update, whether its backward ran or not."""

    def accounts() -> int:
        return sum(type(thing).__name__ == "_Accounts" for thing in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = accounts()  # tracebacks of other tests may hold some
        stack = make()
        loss = value(*stack(*inputs(stack)))
        assert accounts() == before + 2  # one per layer
        if backward:
            loss.backward()
        del loss
        assert accounts() == before
    finally:
        gc.enable()


def test_what_a_backward_gathered_is_gone_with_it() -> None:
    """Though it asked for no matrix, and the graph stays: as many may be asked as there are
    steps."""

    def accounts() -> int:
        return sum(type(thing).__name__ == "_Account" for thing in gc.get_objects())

    before = accounts()
    stack = make()
    x, state = inputs(stack)
    loss = value(*stack(x, state))
    torch.autograd.grad(loss, x, retain_graph=True)
    assert accounts() == before
