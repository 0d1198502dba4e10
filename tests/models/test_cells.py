"""Cells against oracles: PyTorch without a norm, the equations in float64 with one."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from models.cells import CELLS, Cell, CellKind, GRUCell, LSTMCell, RNNCell
from models.norms import EPSILON, NORMS, NormKind
from models.stack import Dropout, Stack, dropout_mask

T, B, E, H = 7, 3, 5, 8


def run(cell: Cell, x: Tensor) -> Tensor:
    state = cell.initial_state(x.shape[1])
    outputs = []
    for projected in cell.project(x).unbind(0):
        state = cell.step(projected, state)
        outputs.append(state[0])
    return torch.stack(outputs)


def randomised(cell: Cell, seed: int = 0) -> Cell:
    """Every parameter random, gains and biases too, so that none can be left out unnoticed."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in cell.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return cell.double()


def inputs() -> Tensor:
    return torch.randn(T, B, E, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def normalise(a: Tensor, gain: Tensor, bias: Tensor | float) -> Tensor:
    mean = a.mean(-1, keepdim=True)
    variance = ((a - mean) ** 2).mean(-1, keepdim=True)
    return (a - mean) / torch.sqrt(variance + EPSILON) * gain + bias


def test_an_lstm_without_norm_is_pytorchs_lstm() -> None:
    cell = randomised(LSTMCell(E, H, "none"))
    oracle = nn.LSTM(E, H, dtype=torch.float64)
    order = [1, 0, 3, 2]  # ours is f, i, o, g; PyTorch's i, f, g, o
    gates = {n: p.data.chunk(4) for n, p in cell.named_parameters()}
    oracle.weight_ih_l0.data = torch.cat([gates["weight_x"][i] for i in order])
    oracle.weight_hh_l0.data = torch.cat([gates["weight_h"][i] for i in order])
    oracle.bias_ih_l0.data = torch.cat([gates["norm_x.bias"][i] for i in order])
    oracle.bias_hh_l0.data.zero_()
    assert torch.allclose(run(cell, inputs()), oracle(inputs())[0], rtol=0, atol=1e-13)


def test_a_gru_without_norm_is_pytorchs_gru_with_the_update_gate_turned_round() -> None:
    cell = randomised(GRUCell(E, H, "none"))
    oracle = nn.GRU(E, H, dtype=torch.float64)

    def arranged(z_r_u: Tensor) -> Tensor:
        z, r, u = z_r_u.chunk(3)
        return torch.cat([r, -z, u])  # PyTorch's z keeps the old state, the paper's lets it go

    oracle.weight_ih_l0.data = arranged(cell.weight_x.data)
    oracle.weight_hh_l0.data = arranged(cell.weight_h.data)
    norms = {n: p.data for n, p in cell.named_parameters() if n.startswith("norm")}
    oracle.bias_ih_l0.data = arranged(
        torch.cat([norms["norm_x_gates.bias"], norms["norm_x_update.bias"]])
    )
    oracle.bias_hh_l0.data = torch.cat([torch.zeros(2 * H), norms["norm_h_update.bias"]])
    assert torch.allclose(run(cell, inputs()), oracle(inputs())[0], rtol=0, atol=1e-13)


def test_an_rnn_without_norm_is_pytorchs_rnn() -> None:
    cell = randomised(RNNCell(E, H, "none"))
    oracle = nn.RNN(E, H, dtype=torch.float64)
    oracle.weight_ih_l0.data = cell.weight_x.data
    oracle.weight_hh_l0.data = cell.weight_h.data
    oracle.bias_ih_l0.data = cell.norm_sum.bias.data
    oracle.bias_hh_l0.data.zero_()
    assert torch.allclose(run(cell, inputs()), oracle(inputs())[0], rtol=0, atol=1e-13)


def test_an_ln_lstm_follows_the_equations_of_the_paper() -> None:
    cell = randomised(LSTMCell(E, H, "layer"))
    p = dict(cell.named_parameters())
    h = c = torch.zeros(B, H, dtype=torch.float64)
    outputs = []
    for x in inputs():
        gates = normalise(h @ p["weight_h"].T, p["norm_h.weight"], 0.0)
        gates = gates + normalise(x @ p["weight_x"].T, p["norm_x.weight"], p["norm_x.bias"])
        f, i, o, g = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * normalise(c, p["norm_c.weight"], p["norm_c.bias"]).tanh()
        outputs.append(h)
    assert torch.allclose(run(cell, inputs()), torch.stack(outputs), rtol=0, atol=1e-12)


def test_an_ln_gru_follows_the_equations_of_the_paper() -> None:
    cell = randomised(GRUCell(E, H, "layer"))
    p = dict(cell.named_parameters())
    h = torch.zeros(B, H, dtype=torch.float64)
    outputs = []
    for x in inputs():
        wx, wh = x @ p["weight_x"].T, h @ p["weight_h"].T
        gates = normalise(
            wx[:, : 2 * H], p["norm_x_gates.weight"], p["norm_x_gates.bias"]
        ) + normalise(wh[:, : 2 * H], p["norm_h_gates.weight"], 0.0)
        z, r = gates.sigmoid().chunk(2, dim=-1)
        u = normalise(wx[:, 2 * H :], p["norm_x_update.weight"], p["norm_x_update.bias"])
        v = normalise(wh[:, 2 * H :], p["norm_h_update.weight"], p["norm_h_update.bias"])
        h = (1 - z) * h + z * (u + r * v).tanh()
        outputs.append(h)
    assert torch.allclose(run(cell, inputs()), torch.stack(outputs), rtol=0, atol=1e-12)


def test_an_ln_rnn_normalises_the_whole_sum_once() -> None:
    cell = randomised(RNNCell(E, H, "layer"))
    p = dict(cell.named_parameters())
    h = torch.zeros(B, H, dtype=torch.float64)
    outputs = []
    for x in inputs():
        a = h @ p["weight_h"].T + x @ p["weight_x"].T
        h = normalise(a, p["norm_sum.weight"], p["norm_sum.bias"]).tanh()
        outputs.append(h)
    assert torch.allclose(run(cell, inputs()), torch.stack(outputs), rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", list(CELLS))
def test_all_steps_at_once_equal_one_step_after_another(kind: str, norm: str) -> None:
    torch.manual_seed(0)
    stack = Stack(E, H, 3, kind, norm, Dropout()).double()
    state = stack.initial_state(B)
    whole, whole_state = stack(inputs(), state)
    outputs = []
    for x in inputs():
        y, state = stack.step(x, state)
        outputs.append(y)
    assert whole.shape == (T, B, 3 * H)
    assert torch.allclose(whole, torch.stack(outputs), rtol=0, atol=1e-13)
    for a, b in zip(whole_state, state, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-13)


def test_an_unknown_norm_is_refused_by_name() -> None:
    with pytest.raises(
        ValueError, match=r"model\.norm is 'group'; it must be one of layer, .*none$"
    ):
        LSTMCell(E, H, "group")


def test_every_dropout_path_acts_in_training_and_none_in_evaluation() -> None:
    for path in ("input", "recurrent", "output"):
        torch.manual_seed(0)
        stack = Stack(E, H, 1, "lstm", "layer", Dropout(**{path: 0.5})).double()
        plain = stack.eval()(inputs(), stack.initial_state(B))[0]
        dropped = stack.train()(inputs(), stack.initial_state(B))[0]
        assert not torch.equal(plain, dropped), path
        assert torch.equal(plain, stack.eval()(inputs(), stack.initial_state(B))[0]), path


def test_every_step_and_row_has_units_of_its_own_dropped_at_the_rate_of_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = list[tuple[tuple[int, ...], float]]()

    def mask(like: Tensor, rate: float) -> Tensor:
        drawn.append((tuple(like.shape), rate))
        return dropout_mask(like, rate)

    monkeypatch.setattr("models.stack.dropout_mask", mask)
    stack, x = Stack(E, H, 2, "lstm", "layer", Dropout(0.1, 0.2, 0.3)), torch.rand(5, B, E)
    stack.train()(x, stack.initial_state(B))
    layers = [((5, B, E), 0.1), ((5, B, H), 0.2), ((5, B, H), 0.1), ((5, B, H), 0.2)]
    assert drawn == [*layers, ((5, B, 2 * H), 0.3)]


def test_a_dropout_mask_keeps_the_mean_and_the_rate() -> None:
    torch.manual_seed(0)
    mask = dropout_mask(torch.empty(1000, 1001), 0.25)
    assert (mask == 0).float().mean().item() == pytest.approx(0.25, abs=2e-3)
    assert mask.mean().item() == pytest.approx(1.0, abs=3e-3)
    assert mask.unique().tolist() == pytest.approx([0.0, 4 / 3])
    coarse = dropout_mask(torch.empty(100, 100), 0.1)  # in 26 of 256 cases
    assert coarse.max().item() == pytest.approx(256 / 230)


def test_what_every_layer_is_given_is_dropped() -> None:
    torch.manual_seed(0)
    stack = Stack(E, H, 3, "lstm", "layer", Dropout(input=0.5))
    seen: list[Tensor] = []
    for cell in stack.cells:
        project = cell.project

        def noted(x: Tensor, at: Tensor | None, project: Any = project) -> Any:
            seen.append(x)
            return project(x, at)

        cell.project = noted  # type: ignore[assignment]
    stack(inputs().float(), stack.initial_state(B))
    assert [(x == 0).float().mean().item() for x in seen] == pytest.approx([0.5] * 3, abs=0.15)


def test_every_step_leaves_out_other_units_than_the_one_before() -> None:
    torch.manual_seed(0)
    stack = Stack(E, H, 1, "rnn", "layer", Dropout(recurrent=0.5)).double()
    (cell,) = stack.cells
    step, kept = cell.step, set()

    def noted(*given: Any) -> Any:
        kept.add(given[3].numpy().tobytes())
        return step(*given)

    cell.step = noted  # type: ignore[assignment]
    stack(inputs(), stack.initial_state(B))
    assert len(kept) == T


def test_recurrent_dropout_leaves_out_what_is_new_and_nothing_that_is_remembered() -> None:
    nothing, h = torch.zeros(B, H).double(), torch.rand(B, H).double()
    lstm, gru = randomised(LSTMCell(E, H, "layer")), randomised(GRUCell(E, H, "layer"))
    projected = lstm.project(inputs()[0])
    assert lstm.step(projected, (h, nothing), keep=nothing)[1].abs().max() == 0
    assert lstm.step(projected, (h, nothing + 1), keep=nothing)[1].min() > 0
    assert torch.equal(gru.step(gru.project(inputs()[0]), (h,), keep=nothing)[0], h)


def test_recurrent_dropout_of_an_rnn_leaves_out_what_it_knows() -> None:
    rnn, h = randomised(RNNCell(E, H, "layer")), torch.rand(B, H).double()
    projected, keep = rnn.project(inputs()[0]), torch.tensor([2.0, 0.0]).double().repeat(B, H // 2)
    dropped = rnn.step(projected, (h,), keep=keep)[0]
    assert torch.equal(dropped, rnn.step(projected, (h * keep,))[0])
    assert not torch.equal(dropped, rnn.step(projected, (h,))[0])


@pytest.mark.parametrize("norm", NORMS)
def test_an_lstm_begins_with_its_forget_gates_open_and_no_other(norm: NormKind) -> None:
    bias = LSTMCell(E, H, norm).norm_x.get_parameter("bias")
    assert bias.tolist() == [1.0] * H + [0.0] * (3 * H)


@pytest.mark.parametrize("kind", list(CELLS))
def test_every_gate_begins_with_an_orthogonal_matrix(kind: CellKind) -> None:
    for gate in CELLS[kind](E, H, "layer").weight_h.split(H):
        torch.testing.assert_close(gate @ gate.t(), torch.eye(H), rtol=0, atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_what_an_lstm_remembers_has_a_bias_where_it_is_normalised(norm: NormKind) -> None:
    biased = LSTMCell(2, 3, norm).norm_c.bias is not None
    assert biased == (norm in ("layer", "batch"))
