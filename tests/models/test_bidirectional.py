"""Reading both ways: PyTorch's own LSTM on packed sequences, lengths, steps against the whole."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from models.bidirectional import Bidirectional, reverse
from models.cells import CELLS, CellKind
from models.norms import NORMS, NormKind

_LENGTHS = torch.tensor([4, 1, 6, 3])
_INPUTS, _UNITS, _STEPS = 3, 5, 6


def _made(cell: CellKind, norm: NormKind) -> tuple[Bidirectional, Tensor]:
    torch.manual_seed(0)
    model = Bidirectional(_INPUTS, _UNITS, cell, norm).double().eval()
    return model, torch.randn(_STEPS, len(_LENGTHS), _INPUTS, dtype=torch.float64)


def _oracle(model: Bidirectional) -> nn.LSTM:
    """PyTorch's LSTM, whose gates stand in another order, with the same weights."""
    oracle = nn.LSTM(_INPUTS, _UNITS, bidirectional=True).double()

    def in_order(rows: Tensor) -> Tensor:
        f, i, o, g = rows.chunk(4)
        return torch.cat([i, f, g, o])

    with torch.no_grad():
        for stack, suffix in ((model.ahead, ""), (model.back, "_reverse")):
            cell = stack.cells[0]
            for ours, theirs in (("weight_x", "weight_ih"), ("weight_h", "weight_hh")):
                getattr(oracle, f"{theirs}_l0{suffix}").copy_(in_order(getattr(cell, ours)))
            getattr(oracle, f"bias_ih_l0{suffix}").copy_(in_order(cell.norm_x.bias))
            getattr(oracle, f"bias_hh_l0{suffix}").zero_()
    return oracle


@pytest.mark.parametrize("change", [0.0, 1e-3])
def test_it_is_pytorchs_lstm_on_packed_sequences(change: float) -> None:
    model, x = _made("lstm", "none")
    oracle = _oracle(model)
    with torch.no_grad():
        model.back.cells[0].weight_h[0, 0] += change
        packed, (h, _) = oracle(pack_padded_sequence(x, _LENGTHS, enforce_sorted=False))
        expected, _ = pad_packed_sequence(packed)
        y, last = model(x, _LENGTHS)
    assert ((y - expected).abs().max() < 1e-12) == (change == 0)
    assert ((last - torch.cat([h[0], h[1]], dim=-1)).abs().max() < 1e-12) == (change == 0)


def test_reversing_stays_within_lengths_and_undoes_itself() -> None:
    x = torch.arange(12).view(6, 2)
    lengths = torch.tensor([4, 6])
    assert reverse(x, lengths)[:, 0].tolist() == [6, 4, 2, 0, 8, 10]
    assert reverse(x, lengths)[:, 1].tolist() == [11, 9, 7, 5, 3, 1]
    assert torch.equal(reverse(reverse(x, lengths), lengths), x)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("cell", list(CELLS))
def test_padding_changes_nothing_when_served(cell: CellKind, norm: NormKind) -> None:
    model, x = _made(cell, norm)
    y, last = model(x, _LENGTHS)
    other = x.clone()
    for row, length in enumerate(_LENGTHS.tolist()):
        assert not y[length:, row].any()
        other[length:, row] = 100.0
    y_other, last_other = model(other, _LENGTHS)
    assert torch.equal(y, y_other)
    assert torch.equal(last, last_other)


def test_padding_changes_batch_norm_in_training() -> None:
    model, x = _made("lstm", "batch")
    model.train()
    other = x.clone()
    other[1:, 1] = 100.0
    with torch.no_grad():
        moved = model(other, _LENGTHS)[1] - model(x, _LENGTHS)[1]
    assert moved[2].abs().max() > 1e-3


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("cell", list(CELLS))
def test_steps_from_both_ends_are_the_whole(cell: CellKind, norm: NormKind) -> None:
    model, x = _made(cell, norm)
    state = model.initial_state(len(_LENGTHS))
    assert len(state) == len(model.state_names)
    back_x = reverse(x, _LENGTHS)
    ahead, back = [], []
    for from_front, from_end in zip(x, back_x, strict=True):
        a, b, state = model.step(from_front, from_end, state)
        ahead.append(a)
        back.append(b)
    y, last = model(x, _LENGTHS)
    turned = reverse(torch.stack(back), _LENGTHS)
    for row, length in enumerate(_LENGTHS.tolist()):
        expected = torch.cat([torch.stack(ahead)[:length, row], turned[:length, row]], dim=-1)
        assert (y[:length, row] - expected).abs().max() < 1e-12
        ends = torch.cat([ahead[length - 1][row], back[length - 1][row]])
        assert (last[row] - ends).abs().max() < 1e-12


def test_states_are_named_after_the_direction_they_are_of() -> None:
    model, x = _made("rnn", "none")
    _, _, after = model.step(x[0], x[0] * 0, model.initial_state(len(_LENGTHS)))
    moved = [name for name, state in zip(model.state_names, after, strict=True) if state.any()]
    assert moved == ["ahead_h0"]


def test_both_directions_keep_statistics_of_as_many_steps_as_they_are_told() -> None:
    model = Bidirectional(_INPUTS, _UNITS, "rnn", "batch", longest_step=7)
    kept = [buffer.shape for buffer in model.buffers()]
    assert kept == 4 * [(7, _UNITS)]  # a mean and a variance each
