"""The soft window: where it stands, how it moves, and what it can see."""

import math

import pytest
import torch
from torch import Tensor

from models.window import SoftWindow

_UNITS, _K, _SYMBOLS, _WIDTH, _LONGEST = 12, 3, 20, 5, 16


@pytest.fixture
def window() -> SoftWindow:
    torch.manual_seed(0)
    made = SoftWindow(_UNITS, _K, _SYMBOLS, _WIDTH, _LONGEST).double()
    made.requires_grad_(False)
    return made


def look(
    window: SoftWindow, text: Tensor, beyond: Tensor, seed: int = 1, scale: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of a batch, the window at 0.3, 1.1 and 2.7: what it returns."""
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(len(text), _UNITS, generator=generator, dtype=torch.float64) * scale
    kappa = torch.tensor([[0.3, 1.1, 2.7]], dtype=torch.float64).expand(len(text), -1)
    return window(h, kappa, window.embed(text), beyond)


def test_a_step_is_the_equations_one_by_one(window: SoftWindow) -> None:
    text = torch.randint(1, _SYMBOLS, (2, 6))
    nothing = torch.zeros(2, 6, dtype=torch.bool)
    h = torch.randn(2, _UNITS, dtype=torch.float64) * torch.tensor([[1.0], [8.0]])
    before = torch.tensor([[0.3, 1.1, 2.7], [0.0, 0.0, 5.0]], dtype=torch.float64)
    seen, kappa, weights = window(h, before, window.embed(text), nothing)
    assert (kappa - before).max() > 1  # a centre may pass over a character
    for row in range(2):
        outputs = [math.exp(float(e)) for e in window.parameters_of(h[row])]
        alpha, beta, pace = outputs[:_K], outputs[_K : 2 * _K], outputs[2 * _K :]
        after = [float(before[row, k]) + pace[k] for k in range(_K)]
        assert kappa[row].tolist() == pytest.approx(after, abs=1e-12)
        expected = [
            sum(alpha[k] * math.exp(-beta[k] * (after[k] - u - 0.5) ** 2) for k in range(_K))
            for u in range(6)
        ]
        assert weights[row].tolist() == pytest.approx(expected, abs=1e-12)
        embedded = window.embedding(text[row])
        sums = [sum(expected[u] * float(embedded[u, e]) for u in range(6)) for e in range(_WIDTH)]
        assert seen[row].tolist() == pytest.approx(sums, abs=1e-12)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_its_centres_never_move_to_the_left(window: SoftWindow, scale: float) -> None:
    text = torch.ones(500, 4, dtype=torch.int64)
    _, kappa, _ = look(window, text, text == 0, scale=scale)
    before = torch.tensor([0.3, 1.1, 2.7], dtype=torch.float64)
    assert (kappa >= before).all()
    assert (kappa > before).any(dim=0).all()


def test_what_lies_beyond_the_text_weighs_exactly_nothing(window: SoftWindow) -> None:
    text = torch.randint(1, _SYMBOLS, (8, 10))
    beyond = torch.arange(10) > torch.arange(1, 9).unsqueeze(-1)
    seen, _, weights = look(window, text, beyond)
    assert (weights[beyond] == 0).all()
    assert (weights[~beyond] > 0).all()
    other = torch.where(beyond, (text + 7) % _SYMBOLS, text)
    assert torch.equal(look(window, other, beyond)[0], seen)
    assert not torch.equal(look(window, (text + 7) % _SYMBOLS, beyond)[0], seen)


def test_a_row_sees_the_same_in_any_batch(window: SoftWindow) -> None:
    text = torch.randint(1, _SYMBOLS, (5, 7))
    beyond = torch.zeros(5, 7, dtype=torch.bool)
    h = torch.randn(5, _UNITS, dtype=torch.float64)
    kappa = torch.rand(5, _K, dtype=torch.float64) * 5
    together = window(h, kappa, window.embed(text), beyond)
    for row in range(5):
        one = slice(row, row + 1)
        alone = window(h[one], kappa[one], window.embed(text[one]), beyond[one])
        for ours, theirs in zip(alone, together, strict=True):
            assert (ours[0] - theirs[row]).abs().max() < 1e-14


def test_a_window_far_from_the_text_sees_nothing_and_stays_finite(window: SoftWindow) -> None:
    text = torch.ones(1, 4, dtype=torch.int64)
    for place in (-1e6, 1e6):
        kappa = torch.full((1, _K), place, dtype=torch.float64)
        h = torch.zeros(1, _UNITS, dtype=torch.float64)
        seen, _, weights = window(h, kappa, window.embed(text), text == 0)
        assert (weights == 0).all()
        assert (seen == 0).all()


def test_it_begins_a_tenth_of_a_character_a_step_with_a_weight_of_one(window: SoftWindow) -> None:
    alpha, beta, pace = window.parameters_of(torch.zeros(_UNITS).double()).exp().chunk(3)
    assert float(alpha.sum()) == pytest.approx(1)
    assert beta.tolist() == pytest.approx([1] * _K)
    assert pace.tolist() == pytest.approx([0.1] * _K)


def test_places_are_the_middles_of_characters(window: SoftWindow) -> None:
    assert window.places(3).tolist() == [0.5, 1.5, 2.5]
    assert window.places(_LONGEST) is window.positions
    assert "positions" in window.state_dict()
