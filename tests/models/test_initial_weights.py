"""Weights before training, by the scale they are drawn at."""

import pytest
import torch
from torch import nn

from models.cells import RNNCell
from models.mlp import NormalizedLinear
from models.sentence import SentenceEncoder


def test_the_vector_of_a_word_is_about_of_length_one() -> None:
    torch.manual_seed(0)
    words = SentenceEncoder(500, 16, 2, "layer", 5).embedding.weight
    assert words.norm(dim=1).mean().item() == pytest.approx(1, rel=0.05)


def test_a_layer_keeps_the_mean_square_of_what_goes_through_its_relus() -> None:
    torch.manual_seed(0)
    layer = NormalizedLinear(200, 1000, nn.Identity(), weight_norm=False)
    x = torch.randn(100, 200)
    assert layer(x).square().mean().item() == pytest.approx(1, rel=0.05)


def test_what_a_cell_sees_is_weighed_evenly_between_the_bounds_of_its_widths() -> None:
    torch.manual_seed(0)
    weights = RNNCell(200, 300, "none").weight_x.abs()
    bound = (6 / (200 + 300)) ** 0.5  # Glorot and Bengio 2010, eq. 16
    assert bound * 0.999 < weights.max().item() < bound
    assert weights.mean().item() == pytest.approx(bound / 2, rel=0.01)
