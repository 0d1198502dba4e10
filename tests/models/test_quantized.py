"""Matrices of eight bits: rounded as said, by the same rule in training as served."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import parametrize

from contract.integers import LARGEST_INPUT
from models.handwriting import HandwritingConfig, HandwritingModel, Text
from models.language import LanguageConfig, LanguageModel
from models.norms import fold
from models.quantized import (
    LARGEST_WEIGHT,
    EightBits,
    as_floats,
    integer_matrices,
    integers,
    load_weights,
)

TEXT = LanguageConfig(layers=2, units=32, embedding=8, precision="int8")
PEN = HandwritingConfig(units=24, mixtures=2, window=3, embedding=8, precision="int8")


@pytest.fixture
def model() -> LanguageModel:
    torch.manual_seed(4)
    return LanguageModel(TEXT)


def rounded(weight: Tensor) -> Tensor:
    """The rule again: 64 is the largest of a row, halves go to the even integer."""
    unit = weight.abs().amax(1, keepdim=True) / 64
    return torch.round(weight / unit) * unit


def test_a_matrix_is_off_by_half_a_unit_at_most_and_its_largest_value_by_nothing() -> None:
    weight = torch.randn(6, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weight[2] = 0
    whole, unit = integers(weight)
    assert whole.dtype == torch.int8
    assert whole.shape == (40, 6)
    assert whole.abs().max() == LARGEST_WEIGHT
    error = ((whole * unit).t() - weight).abs()
    assert (error <= unit.unsqueeze(1) / 2 * (1 + 1e-12)).all()
    assert error.gather(1, weight.abs().argmax(1, keepdim=True)).max() < 1e-15


def test_a_row_of_zeros_has_a_unit_all_the_same() -> None:
    weight = torch.tensor([[0.0, 0.0, 0.0], [64.0, -32.0, 1.0]])
    whole, unit = integers(weight)
    assert unit.tolist() == [1.0, 1.0]
    assert whole.t().tolist() == weight.tolist()


def test_halves_are_rounded_to_the_even_integer() -> None:
    weight = torch.tensor([[64.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5]])
    assert integers(weight)[0].flatten().tolist() == [64, 0, 2, 2, 0, -2, -2, 4]


def test_two_products_fit_sixteen_bits() -> None:
    assert 2 * 255 * LARGEST_WEIGHT < 2**15


def test_every_matrix_and_nothing_else_is_of_eight_bits(model: LanguageModel) -> None:
    plain = LanguageModel(replace(TEXT, precision="float32"))
    matrices = {n for n, p in plain.named_parameters() if p.dim() == 2} - {"embedding.weight"}
    settled = fold(model)
    assert set(integer_matrices(settled)) == matrices
    state = settled.state_dict()
    small = {name for name, tensor in state.items() if tensor.dtype == torch.int8}
    assert small == {f"{where}0" for where in integer_matrices(settled).values()}
    assert model.hidden_inputs() == matrices - {"stack.cells.0.weight_x"}
    pen = fold(HandwritingModel(PEN))
    seen = {"first.weight_x", "above.cells.0.weight_x"}
    assert set(integer_matrices(pen)) - pen.hidden_inputs() == seen


@torch.no_grad()
def test_training_computes_the_network_of_rounded_matrices(model: LanguageModel) -> None:
    # In float32 some libraries sum in an order that depends on where a matrix lies.
    model, plain = model.double(), LanguageModel(replace(TEXT, precision="float32")).double()
    state = model.state_dict()
    names = {n.replace("parametrizations.", "").removesuffix(".original"): n for n in state}
    for name, weight in plain.named_parameters():
        trained = state[names[name]]
        matrix = trained.dim() == 2 and name != "embedding.weight"
        weight.copy_(rounded(trained) if matrix else trained)
    tokens = torch.randint(0, 256, (9, 3))
    logits, _ = model.train()(tokens, model.initial_state(3))
    expected, _ = plain(tokens, plain.initial_state(3))
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("config", [TEXT, PEN], ids=["text", "pen"])
def test_what_is_served_is_the_network_that_was_trained_bit_for_bit(
    config: LanguageConfig | HandwritingConfig,
) -> None:
    torch.manual_seed(5)
    model = (
        LanguageModel(config) if isinstance(config, LanguageConfig) else HandwritingModel(config)
    )
    for served in (fold(model), fold(fold(model)), as_floats(fold(model))):
        assert torch.equal(run(model), run(served))


def run(model: LanguageModel | HandwritingModel) -> Tensor:
    torch.manual_seed(6)
    if isinstance(model, LanguageModel):
        return model(torch.randint(0, 256, (9, 3)), model.initial_state(3))[0]
    text = Text(torch.randint(1, 96, (3, 5)), torch.tensor([4, 3, 2]))
    return model(torch.randn(9, 3, 3), text, model.initial_state(3))[0]  # type: ignore[no-any-return]


def test_the_gradient_passes_the_rounding_as_if_there_were_none() -> None:
    generator = torch.Generator().manual_seed(2)
    weight = torch.randn(6, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    y = torch.tanh(F.linear(x, EightBits()(weight)))
    y.square().sum().backward()
    plain = rounded(weight.detach()).requires_grad_()
    again = x.detach().clone().requires_grad_()
    torch.tanh(F.linear(again, plain)).square().sum().backward()
    torch.testing.assert_close(weight.grad, plain.grad, rtol=0, atol=1e-12)
    torch.testing.assert_close(x.grad, again.grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("side", [1, -1])
def test_a_pen_takes_a_point_that_is_far_away_for_one_that_is_less_far(side: int) -> None:
    torch.manual_seed(7)
    model, text = HandwritingModel(PEN), Text(torch.tensor([[5, 0]]), torch.tensor([1]))
    distances = (9e3, LARGEST_INPUT, 200.0)
    far, less, near = (torch.tensor([[[side * x, 0.0, 0.0]]]) for x in distances)
    outputs = [model(point, text, model.initial_state(1))[0] for point in (far, less, near)]
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[1], outputs[2])
    plain = HandwritingModel(replace(PEN, precision="float32"))
    wide = [plain(point, text, plain.initial_state(1))[0] for point in (far, less)]
    assert not torch.equal(*wide)


def test_weights_of_float32_are_taken_over_and_others_are_refused(model: LanguageModel) -> None:
    plain = LanguageModel(replace(TEXT, precision="float32"))
    load_weights(model, plain.state_dict())
    original = model.stack.cells[1].parametrizations.weight_h.original
    assert torch.equal(original, plain.stack.cells[1].weight_h)
    other = LanguageModel(replace(TEXT, precision="float32", units=16)).state_dict()
    whole = plain.state_dict()
    lacks = {name: weight for name, weight in whole.items() if name != "readout.bias"}
    for weights in (other, lacks, whole | {"readout.gain": torch.ones(1)}):
        with pytest.raises(ValueError, match="of another model"):
            load_weights(model, weights)


def test_a_copy_for_the_graph_is_a_float32_model_and_leaves_its_original_alone(
    model: LanguageModel,
) -> None:
    settled = fold(model)
    assert not integer_matrices(model)  # it may learn on
    plain = as_floats(settled)
    assert plain.config == replace(TEXT, precision="float32")
    assert not any(parametrize.is_parametrized(m) for m in plain.modules())
    assert integer_matrices(settled)
    assert as_floats(plain) is plain


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"precision": "int4"}, "model.precision is 'int4'"),
        ({"precision": "int8", "norm": "weight"}, "not with 'int8'"),
    ],
)
def test_a_precision_that_is_none_is_refused(values: dict[str, str], reason: str) -> None:
    for config in (LanguageConfig, HandwritingConfig):
        with pytest.raises(ValueError, match=reason):
            config(**values)  # type: ignore[arg-type]


@torch.no_grad()
def test_a_model_of_eight_bits_can_be_made_wide(model: LanguageModel) -> None:
    settled = fold(model)
    wide = copy.deepcopy(settled).double()
    tokens = torch.randint(0, 256, (5, 2))
    exact, _ = wide(tokens, wide.initial_state(2))
    assert exact.dtype == torch.float64
    torch.testing.assert_close(
        settled(tokens, settled.initial_state(2))[0].double(), exact, rtol=0, atol=1e-5
    )


def test_weight_norm_begins_from_the_matrices_that_it_makes() -> None:
    made, other = (
        LanguageModel(replace(TEXT, precision="float32", norm="weight")) for _ in range(2)
    )
    load_weights(other, fold(made).state_dict())
    matrices = [model.stack.cells[1].weight_h for model in (made, other)]
    torch.testing.assert_close(*matrices)
    symbols = torch.randint(0, 256, (12, 2))
    logits = [model(symbols, model.initial_state(2))[0] for model in (made, other)]
    torch.testing.assert_close(*logits)
