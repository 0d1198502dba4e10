"""Weights before training, by the scale they are drawn at."""

import pytest
import torch
from torch import nn

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
