"""A table in place of the first layer's projection computes the same steps."""

import copy

import pytest
import torch

from models.cells import CELLS, CellKind
from models.language import LanguageConfig, LanguageModel
from models.norms import NORMS, NormKind, fold
from models.tabulated import TabulatedLanguageModel


def made(cell: CellKind, norm: NormKind, layers: int = 2) -> LanguageModel:
    torch.manual_seed(3)
    config = LanguageConfig(cell=cell, norm=norm, layers=layers, units=12, embedding=5)
    return fold(LanguageModel(config)).double()


@pytest.mark.parametrize("norm", [norm for norm in NORMS if norm != "batch"])
@pytest.mark.parametrize("cell", list(CELLS))
@torch.no_grad()
def test_steps_from_the_table_are_the_steps_of_the_network(cell: CellKind, norm: NormKind) -> None:
    model = made(cell, norm)
    tabulated = TabulatedLanguageModel(model)
    state = same = model.initial_state(3)
    for tokens in torch.randint(0, 256, (6, 3)):
        expected, state = model.step(tokens, state)
        logits, same = tabulated.step(tokens, same)
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-13)


def test_what_the_table_stands_for_is_gone_and_the_rest_is_shared() -> None:
    model = made("lstm", "layer", layers=1)
    left = set(dict(TabulatedLanguageModel(model).named_parameters()))
    gone = {"embedding.weight", "stack.cells.0.weight_x"}
    gone |= {"stack.cells.0.norm_x.weight", "stack.cells.0.norm_x.bias"}
    assert left == set(dict(model.named_parameters())) - gone | {"table"}
    assert hasattr(model.stack.cells[0], "weight_x")


@pytest.mark.parametrize("cell", list(CELLS))
def test_nothing_is_left_that_no_step_uses(cell: CellKind) -> None:
    """It would stand among the weights, and in no graph."""
    tabulated = TabulatedLanguageModel(made(cell, "layer", layers=1))
    logits, _ = tabulated.step(torch.zeros(1, dtype=torch.int64), tabulated.initial_state(1))
    logits.sum().backward()
    assert [n for n, p in tabulated.named_parameters() if p.grad is None] == []


def test_what_depends_on_the_time_step_is_no_table() -> None:
    torch.manual_seed(0)
    config = LanguageConfig(norm="batch", units=4, embedding=3, longest_step=2)
    with pytest.raises(ValueError, match="no table"):
        TabulatedLanguageModel(LanguageModel(config))


@torch.no_grad()
def test_the_table_is_computed_in_float64_and_rounded_once() -> None:
    model = made("lstm", "layer").float()
    table = TabulatedLanguageModel(model).table
    projected = [
        m.stack.cells[0].project(m.embedding.weight).float()
        for m in (copy.deepcopy(model).double(), model)
    ]
    assert torch.equal(table, projected[0])
    assert not torch.equal(table, projected[1])
