"""8-bit products: rounded as said, close to the exact network, independent of the batch."""

import copy

import pytest
import torch

from models.language import LanguageConfig, LanguageModel
from models.norms import NormKind, fold
from models.quantized import LARGEST_WEIGHT, QuantizedLanguageModel, input_scales, integers


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    torch.manual_seed(4)
    return LanguageModel(LanguageConfig(layers=2, units=32, embedding=8)).double()


def test_a_matrix_is_off_by_half_a_unit_at_most_and_its_largest_value_by_nothing() -> None:
    weight = torch.randn(6, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weight[2] = 0
    whole, scale = integers(weight)
    assert whole.dtype == torch.int8
    assert whole.abs().max() == LARGEST_WEIGHT
    error = (whole * scale.unsqueeze(1) - weight).abs()
    assert (error <= scale.unsqueeze(1) / 2 * (1 + 1e-12)).all()
    assert error.gather(1, weight.abs().argmax(1, keepdim=True)).max() < 1e-15


def test_two_products_fit_sixteen_bits() -> None:
    assert 2 * 255 * LARGEST_WEIGHT < 2**15


def test_every_matrix_and_nothing_else_is_quantised(model: LanguageModel) -> None:
    matrices = {n for n, p in model.named_parameters() if p.dim() == 2} - {"embedding.weight"}
    assert set(input_scales(model)) == matrices
    quantized = QuantizedLanguageModel(model)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, quantized.get_parameter(name)) == (name not in matrices)


@torch.no_grad()
def test_a_step_is_the_network_with_rounded_inputs_and_matrices(model: LanguageModel) -> None:
    def rounded(x: torch.Tensor, scale: float) -> torch.Tensor:
        return torch.round(x / scale).clamp(-128, 127) * scale

    quantized = QuantizedLanguageModel(model)
    scales = input_scales(model)
    plain = copy.deepcopy(model)
    plain.load_state_dict(quantized.state_dict())
    tokens = torch.tensor([7, 200])
    state = tuple(torch.rand_like(s) * 2 - 1 for s in model.initial_state(2))
    logits, _ = quantized.step(tokens, state)
    x = plain.embedding(tokens)
    outputs = []
    for layer, cell in enumerate(plain.stack.cells):
        h, c = state[2 * layer : 2 * layer + 2]
        x = rounded(x, scales[f"stack.cells.{layer}.weight_x"])
        x, _ = cell.step(cell.project(x), (rounded(h, 1 / 127), c))
        outputs.append(x)
    expected = plain.readout(rounded(torch.cat(outputs, -1), 1 / 127))
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)
    assert (logits - model.step(tokens, state)[0]).abs().max() > 1e-5


@pytest.mark.parametrize("norm", ["weight", "none"])
@torch.no_grad()
def test_a_folded_weight_norm_can_be_quantised_like_any_other(norm: NormKind) -> None:
    torch.manual_seed(5)
    model = fold(LanguageModel(LanguageConfig(norm=norm, units=32, embedding=8)))
    tokens = torch.randint(0, 256, (20, 2))
    exact, _ = model(tokens, model.initial_state(2))
    rounded, _ = QuantizedLanguageModel(model)(tokens, model.initial_state(2))
    assert 0 < (rounded - exact).abs().max() < 0.1


@torch.no_grad()
def test_all_steps_at_once_are_single_steps_in_either_precision(model: LanguageModel) -> None:
    for dtype in (torch.float32, torch.float64):
        quantized = QuantizedLanguageModel(model).to(dtype)
        tokens = torch.randint(0, 256, (5, 3))
        together, _ = quantized(tokens, quantized.initial_state(3))
        state = quantized.initial_state(3)
        for row, expected in zip(tokens, together, strict=True):
            logits, state = quantized.step(row, state)
            assert torch.equal(logits, expected)
