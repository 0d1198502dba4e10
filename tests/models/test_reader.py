"""The reader and its twin: one is causal, the other is not, and neither sees the padding."""

from typing import Any

import pytest
import torch
from torch.nn.utils.parametrize import type_before_parametrizations

from contract.pieces import PIECE
from contract.reader import SYMBOLS
from models.cells import CELLS, Cell
from models.reader import (
    ReaderConfig,
    ReaderModel,
    ReaderStep,
    Readout,
    TwinModel,
    make_reader,
)

_STEPS, _ROWS = 12, 3


@pytest.fixture(params=[False, True], ids=["reader", "twin"])
def model(request: pytest.FixtureRequest) -> ReaderModel | TwinModel:
    torch.manual_seed(0)
    return make_reader(ReaderConfig(units=8, both_ways=request.param)).double()


def _pieces() -> torch.Tensor:
    return torch.randn(_STEPS, _ROWS, PIECE, generator=torch.Generator().manual_seed(1)).double()


def _read(model: ReaderModel | TwinModel, pieces: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    logits, _ = model(pieces, torch.tensor(lengths), model.initial_state(_ROWS))
    assert logits.shape == (_STEPS, _ROWS, SYMBOLS)
    return logits


def test_only_the_twin_sees_what_comes_later(model: ReaderModel | TwinModel) -> None:
    pieces = _pieces().requires_grad_()
    logits = _read(model, pieces, [_STEPS] * _ROWS)
    (gradient,) = torch.autograd.grad(logits[5, 0].sum(), pieces)
    seen = gradient[:, 0].abs().sum(1) > 0
    assert seen[:6].all()
    assert bool(seen[6:].any()) == isinstance(model, TwinModel)
    assert not gradient[:, 1:].any()  # nor another row


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("norm", ["layer", "weight", "none"])
@pytest.mark.parametrize("both_ways", [False, True])
def test_every_layer_is_of_the_cell_and_the_norm_of_the_configuration(
    both_ways: bool, cell: Any, norm: Any
) -> None:
    model = make_reader(ReaderConfig(cell=cell, norm=norm, units=4, both_ways=both_ways))
    layers = [module for module in model.modules() if isinstance(module, Cell)]
    kinds = {(type_before_parametrizations(layer), layer.norm) for layer in layers}
    assert kinds == {(CELLS[cell], norm)}
    assert len(layers) == (4 if both_ways else 2)


@pytest.mark.parametrize("both_ways", [False, True])
def test_what_the_readout_sees_is_dropped_in_training_alone(both_ways: bool) -> None:
    torch.manual_seed(0)
    config = ReaderConfig(units=8, both_ways=both_ways, output_dropout=0.5)
    model, pieces = make_reader(config).double(), _pieces()
    dropped: list[float] = []
    model.readout.register_forward_pre_hook(
        lambda _, given: dropped.append((given[0] == 0).double().mean().item())
    )
    one, other = (_read(model, pieces, [_STEPS] * _ROWS) for _ in range(2))
    assert not torch.equal(one, other)
    assert dropped == pytest.approx([0.5, 0.5], abs=0.1)
    model.eval()
    whole, again = (_read(model, pieces, [_STEPS] * _ROWS) for _ in range(2))
    assert torch.equal(whole, again)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_that_is_none_is_refused_of_either(rate: float) -> None:
    with pytest.raises(ValueError, match="output_dropout is"):
        ReaderConfig(both_ways=True, output_dropout=rate)


def test_padding_changes_nothing_that_counts(model: ReaderModel | TwinModel) -> None:
    lengths = [_STEPS, 7, 4]
    pieces = _pieces()
    logits = _read(model, pieces, lengths)
    other = pieces.clone()
    for row, length in enumerate(lengths):
        other[length:, row] = 9.0
    again = _read(model, other, lengths)
    for row, length in enumerate(lengths):
        assert torch.equal(logits[:length, row], again[:length, row])
    assert isinstance(model, TwinModel) or not torch.equal(logits, again)


def test_steps_are_the_whole_and_an_unforced_step_reads_a_rest() -> None:
    torch.manual_seed(0)
    model = ReaderModel(ReaderConfig(units=8)).double()
    step, pieces = ReaderStep(model), _pieces()
    pieces[8] = 0.0
    state = step.initial_state(_ROWS)
    state = (pieces[0], *(s.double() for s in state[1:]))
    columns = []
    for t in range(_STEPS):
        following = pieces[t + 1] if t + 1 < _STEPS else torch.zeros(_ROWS, PIECE).double()
        force = torch.full((_ROWS,), t != 7)  # the rest after it comes by itself
        results = step(*state, following if t != 7 else following + 5, force)
        state, logits = results[:-1], results[-1]
        columns.append(logits)
    whole = _read(model, pieces, [_STEPS] * _ROWS)
    assert (torch.stack(columns) - whole).abs().max() < 1e-12


def test_how_long_a_piece_is_can_be_seen() -> None:
    """Layer norm would hide it, were there no constant beside it."""
    torch.manual_seed(0)
    model = ReaderModel(ReaderConfig(units=8)).double()
    logits, _ = model(_pieces() * 2, torch.tensor([_STEPS] * _ROWS), model.initial_state(_ROWS))
    assert not torch.allclose(logits, _read(model, _pieces(), [_STEPS] * _ROWS))


@pytest.mark.parametrize(("setting", "value"), [("norm", "batch"), ("layers", 0)])
def test_what_no_reader_can_be_is_refused(setting: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"model.{setting} is"):
        ReaderConfig(**{setting: value})  # type: ignore[arg-type]


def test_the_least_reader_has_a_layer_of_a_unit() -> None:
    model = make_reader(ReaderConfig(layers=1, units=1)).double()
    assert _read(model, _pieces(), [_STEPS] * _ROWS).isfinite().all()


def test_a_step_adds_up_short_sums_of_the_matrix_that_training_multiplies_by() -> None:
    torch.manual_seed(0)
    readout = Readout(300).double()
    assert [tuple(part.shape) for part in readout.parts] == [
        (128, SYMBOLS), (128, SYMBOLS), (44, SYMBOLS)
    ]  # fmt: skip
    y = torch.randn(_ROWS, 300).double()
    torch.testing.assert_close(readout.step(y), readout(y), rtol=0, atol=1e-12)


def test_a_matrix_that_was_kept_whole_is_taken_in_parts() -> None:
    torch.manual_seed(0)
    before = torch.nn.Linear(400, SYMBOLS).double()
    model = ReaderModel(ReaderConfig(units=200)).double()
    weights = {n: w for n, w in model.state_dict().items() if not n.startswith("readout.")}
    weights |= {f"readout.{name}": w for name, w in before.state_dict().items()}
    model.load_state_dict(weights)
    y = torch.randn(_ROWS, 400).double()
    torch.testing.assert_close(model.readout(y), before(y), rtol=0, atol=1e-12)


def test_layers_see_the_constant_where_the_weights_of_an_older_artifact_have_it(
    model: ReaderModel | TwinModel,
) -> None:
    seen = list[torch.Tensor]()
    first = model.stack if isinstance(model, ReaderModel) else model.layers[0]
    first.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    _read(model, _pieces(), [_STEPS] * _ROWS)
    assert torch.equal(seen[0], torch.cat([_pieces(), torch.ones(_STEPS, _ROWS, 1)], dim=-1))
