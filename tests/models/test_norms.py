"""Batch and weight norm against PyTorch's own and against the equations, and what fold() keeps."""

import copy

import pytest
import torch
from torch import Tensor, nn

from models.cells import CELLS, CellKind, LSTMCell
from models.language import LanguageConfig
from models.norms import (
    EPSILON,
    NORMS,
    BatchNorm,
    WeightNorm,
    fold,
    make_layer_norm,
    make_norm,
)
from models.stack import Dropout, Stack

T, B, E, H = 6, 5, 4, 8
LONGEST = 4


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def times(steps: int = T, rows: int = B) -> Tensor:
    return torch.arange(steps).unsqueeze(-1).expand(-1, rows)


def batch_norm() -> BatchNorm:
    """With gains, biases and running statistics that all differ."""
    norm = BatchNorm(H, bias=True, longest_step=LONGEST).double()
    for seed, tensor in enumerate((*norm.parameters(), *norm.buffers()), start=10):
        tensor.data = normal(*tensor.shape, seed=seed).abs() + 0.1
    return norm


def pytorch_batch_norms(ours: BatchNorm) -> list[nn.BatchNorm1d]:
    """One of PyTorch's for every step that has statistics of its own."""
    theirs = []
    for mean, variance in zip(ours.running_mean, ours.running_variance, strict=True):
        norm = nn.BatchNorm1d(H, eps=EPSILON, momentum=BatchNorm.MOMENTUM, dtype=torch.float64)
        norm.weight.data, norm.bias.data = ours.weight.data, ours.bias.data
        norm.running_mean, norm.running_var = mean.clone(), variance.clone()
        theirs.append(norm)
    return theirs


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
def test_every_step_has_a_batch_norm_of_pytorchs_and_those_past_the_longest_share_one(
    training: bool, at_once: bool
) -> None:
    ours = batch_norm()
    theirs = pytorch_batch_norms(ours)
    a = 3 * normal(T, B, H) + 1
    ours.train(training)
    found = ours(a, times()) if at_once else torch.stack(list(map(ours, a, times())))
    expected = [theirs[min(t, LONGEST - 1)].train(training)(a[t]) for t in range(T)]
    assert torch.allclose(found, torch.stack(expected), rtol=0, atol=1e-13)
    for t, norm in enumerate(theirs):
        assert torch.allclose(ours.running_mean[t], norm.running_mean, rtol=0, atol=1e-14)
        assert torch.allclose(ours.running_variance[t], norm.running_var, rtol=0, atol=1e-14)


def test_running_statistics_are_learned_where_gradients_are_and_nowhere_else() -> None:
    norm = batch_norm()
    before = copy.deepcopy(norm.state_dict())
    with torch.no_grad():
        norm.train()(normal(T, B, H), times())
    norm.eval()(normal(T, B, H), times())
    assert all(torch.equal(before[n], t) for n, t in norm.state_dict().items())
    norm.train()(normal(T, B, H), times())
    assert not torch.equal(before["running_mean"], norm.running_mean)
    assert not torch.equal(before["running_variance"], norm.running_variance)


def test_served_rows_may_stand_at_different_steps_and_do_not_see_each_other() -> None:
    norm = batch_norm().eval()
    a, at = normal(B, H), torch.tensor([0, 2, 3, 1, 1000])
    together = norm(a, at)
    for row in range(B):
        alone = norm(a[row : row + 1], at[row : row + 1])
        assert torch.equal(alone[0], together[row])
    assert not torch.allclose(norm(a, at + 1)[:2], together[:2])
    assert torch.equal(norm(a, at + 1)[[2, 4]], together[[2, 4]])  # past the longest: the last


def test_a_bn_lstm_follows_the_equations_of_its_paper() -> None:
    cell = LSTMCell(E, H, "batch").double().train()
    for seed, parameter in enumerate(cell.parameters(), start=20):
        parameter.data = normal(*parameter.shape, seed=seed)
    p = dict(cell.named_parameters())
    x, at = normal(T, B, E, seed=1), times()

    def bn(a: Tensor, gain: Tensor, bias: Tensor | float = 0.0) -> Tensor:
        return gain * (a - a.mean(0)) / torch.sqrt(a.var(0, correction=0) + EPSILON) + bias

    h = c = torch.zeros(B, H, dtype=torch.float64)
    state = (h, c)
    for t, projected in enumerate(cell.project(x, at)):
        state = cell.step(projected, state, at[t])
        gates = bn(h @ p["weight_h"].T, p["norm_h.weight"])
        gates = gates + bn(x[t] @ p["weight_x"].T, p["norm_x.weight"], p["norm_x.bias"])
        f, i, o, g = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * bn(c, p["norm_c.weight"], p["norm_c.bias"]).tanh()
        assert torch.allclose(state[0], h, rtol=0, atol=1e-12)


def test_the_gain_of_batch_norm_starts_at_a_tenth_and_that_of_layer_norm_at_one() -> None:
    assert (make_norm("batch", H).weight == 0.1).all()
    assert (make_norm("layer", H).weight == 1.0).all()


def test_in_a_layer_that_is_no_recurrence_the_gain_of_either_starts_at_one() -> None:
    for kind in ("batch", "layer"):
        assert (make_layer_norm(kind, H).weight == 1.0).all(), kind


def test_what_is_running_goes_a_tenth_of_the_way_to_what_a_batch_has() -> None:
    norm, a = BatchNorm(H, bias=True, longest_step=1).double(), 3 * normal(B, H) + 1
    norm.train()(a)
    assert torch.allclose(norm.running_mean[0], a.mean(0) / 10, rtol=0, atol=1e-14)
    expected = 0.9 + a.var(0) / 10
    assert torch.allclose(norm.running_variance[0], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["embedding", "longest_step"])
def test_a_language_model_without_numbers_or_steps_is_refused_by_their_name(name: str) -> None:
    sizes = {name: 0}
    with pytest.raises(ValueError, match=rf"^model\.{name} is 0; it must be 1 or more$"):
        LanguageConfig(**sizes)


@pytest.mark.parametrize("name", ["embedding", "longest_step"])
def test_a_size_that_no_tensor_can_have_is_refused_by_its_name(name: str) -> None:
    sizes = {name: 2**62}
    with pytest.raises(ValueError, match=rf"^model\.{name} is {2**62}; it must be at most \d+$"):
        LanguageConfig(**sizes)


@pytest.mark.parametrize("kind", list(CELLS))
def test_a_cell_keeps_statistics_of_as_many_steps_as_it_is_told(kind: CellKind) -> None:
    stack = Stack(E, H, 2, kind, "batch", Dropout(), longest_step=LONGEST)
    assert {len(buffer) for buffer in stack.buffers()} == {LONGEST}


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("norm", NORMS)
def test_only_batch_norm_carries_the_time_step(norm: str, layers: int) -> None:
    stack = Stack(E, H, layers, "lstm", norm, Dropout())
    state = stack.initial_state(B)
    assert len(state) == len(stack.state_names)
    assert ("step" in stack.state_names) is (norm == "batch")
    if norm == "batch":
        x = torch.randn(T, B, E)
        assert state[-1].dtype == torch.int64
        _, state = stack(x, state)
        _, state = stack.step(x[0], state)
        assert state[-1].tolist() == [T + 1] * B


def test_statistics_are_counted_from_the_state_that_was_carried_on() -> None:
    torch.manual_seed(0)
    stack = Stack(E, H, 2, "gru", "batch", Dropout(), longest_step=T).double().eval()
    for seed, buffer in enumerate(stack.buffers(), start=30):
        buffer.copy_(normal(*buffer.shape, seed=seed).abs() + 0.1)
    x = normal(T, B, E)
    whole, _ = stack(x, stack.initial_state(B))
    first, state = stack(x[:2], stack.initial_state(B))
    rest, _ = stack(x[2:], state)
    assert torch.allclose(whole, torch.cat([first, rest]), rtol=0, atol=1e-13)
    forgotten, _ = stack(x[2:], (*state[:-1], torch.zeros_like(state[-1])))
    assert not torch.allclose(rest, forgotten, rtol=0, atol=1e-3)


def test_weight_norm_is_pytorchs() -> None:
    gain, direction = normal(H, seed=1), normal(H, E, seed=2)
    oracle = torch._weight_norm(direction, gain.unsqueeze(1), 0)
    assert torch.allclose(WeightNorm()(gain, direction), oracle, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", list(CELLS))
def test_weight_norm_starts_as_no_norm_and_has_a_gain_per_output_unit(kind: str) -> None:
    stacks = []
    for norm in ("weight", "none"):
        torch.manual_seed(0)
        stacks.append(Stack(E, H, 2, kind, norm, Dropout()).double())
    x = normal(T, B, E)
    weight, none = (stack(x, stack.initial_state(B))[0] for stack in stacks)
    assert torch.allclose(weight, none, rtol=0, atol=1e-6)  # the gain is a float32 norm
    cell = stacks[0].cells[0]
    for name in ("weight_x", "weight_h"):
        gain, direction = cell.parametrizations[name].parameters()
        assert gain.shape == (cell.gates * H,)
        direction.data *= 7
        gain.data[0] *= 3
    before, after = (stacks[i].cells[0].weight_h for i in (1, 0))
    assert torch.allclose(after[0], 3 * before[0], rtol=0, atol=1e-6)
    assert torch.allclose(after[1:], before[1:], rtol=0, atol=1e-6)


def test_weight_norm_learns_gain_and_direction() -> None:
    stack = Stack(E, H, 1, "lstm", "weight", Dropout())
    y, _ = stack(torch.randn(T, B, E), stack.initial_state(B))
    y.square().sum().backward()
    for parameter in stack.cells[0].parametrizations.parameters():
        assert parameter.grad.abs().max() > 0


def test_a_matrix_under_weight_norm_is_made_once_for_all_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not once a step, which would take longer than the product it is in."""
    whole, times = WeightNorm.forward, list[int]()

    def noted(self: WeightNorm, gain: Tensor, direction: Tensor) -> Tensor:
        times.append(1)
        return whole(self, gain, direction)

    stack = Stack(E, H, 2, "lstm", "weight", Dropout())
    state = stack.initial_state(B)
    monkeypatch.setattr(WeightNorm, "forward", noted)
    stack(torch.randn(T, B, E), state)
    assert len(times) == 2 * 2  # of what comes in and of what is carried on, in each layer


@pytest.mark.parametrize("kind", list(CELLS))
def test_a_folded_model_computes_the_same_from_plain_matrices_rounded_once(kind: str) -> None:
    torch.manual_seed(0)
    stack = Stack(E, H, 2, kind, "weight", Dropout())
    for parameter in stack.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    names = list(stack.state_dict())
    folded = fold(stack)
    assert list(stack.state_dict()) == names
    plain = Stack(E, H, 2, kind, "none", Dropout()).state_dict()
    assert folded.state_dict().keys() == plain.keys()
    cell = stack.cells[1]
    assert type(folded.cells[1]) is CELLS[kind]
    for name in ("weight_x", "weight_h"):
        gain, direction = (p.double() for p in cell.parametrizations[name].parameters())
        exact = direction * (gain / direction.square().sum(1).sqrt())[:, None]
        found = getattr(folded.cells[1], name)
        assert isinstance(found, nn.Parameter)
        assert torch.equal(found, exact.float())
    x = normal(T, B, E).float()
    trained, served = (s(x, s.initial_state(B))[0] for s in (stack, folded))
    assert torch.allclose(trained, served, rtol=0, atol=1e-5)


@pytest.mark.parametrize("norm", [norm for norm in NORMS if norm != "weight"])
def test_folding_another_norm_changes_no_bit(norm: str) -> None:
    stack = Stack(E, H, 2, "lstm", norm, Dropout())
    before, after = stack.state_dict(), fold(stack).state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("norm", "rescaled", "recentred"),
    [("layer", True, True), ("batch", True, False), ("weight", True, False),
     ("none", False, False)],
)  # fmt: skip
def test_which_changes_of_its_matrices_a_whole_lstm_ignores(
    norm: str, rescaled: bool, recentred: bool
) -> None:
    torch.manual_seed(0)
    stack = Stack(E, H, 1, "lstm", norm, Dropout()).double()
    x, shift = normal(T, B, E), normal(1, H, seed=9)

    def output(factor: float, centre: float) -> Tensor:
        changed = copy.deepcopy(stack)
        name = "parametrizations.weight_h.original1" if norm == "weight" else "weight_h"
        changed.cells[0].get_parameter(name).data.mul_(factor).add_(centre * factor * shift)
        return changed(x, changed.initial_state(B))[0]

    # So large that epsilon, which no scale moves, is lost in the variance.
    large = 1e5
    before = output(large, 0)
    assert torch.allclose(output(3 * large, 0), before, rtol=0, atol=1e-7) is rescaled
    assert torch.allclose(output(large, 1), before, rtol=0, atol=1e-7) is recentred


def test_batch_norm_says_that_it_learns_nothing_from_one_row() -> None:
    norm = batch_norm()
    with pytest.raises(
        ValueError, match=r"^batch norm has 1 row .* batch\.rows must be 2 or more$"
    ):
        norm(normal(1, H), times(1, 1)[0])
    with torch.no_grad():
        assert norm(normal(1, H), times(1, 1)[0]).isfinite().all()
