"""Pictures: the convolution against PyTorch's, the two layer norms, and a planted defect."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from lab.compare import Laboratory
from lab.export import compare
from lab.graphs import PartGraph
from models.convolution import NormalizedConvolution, picture_norm
from models.norms import EPSILON


@pytest.mark.parametrize("side", [28, 14, 7])
def test_a_product_of_neighbourhoods_is_a_convolution(side: int) -> None:
    layer = NormalizedConvolution(side, 3, 5, "none").double()
    x = torch.randn(2, side, side, 3, dtype=torch.float64)
    filters = layer.weight.view(5, 3, 3, 3).permute(0, 3, 1, 2)
    expected = F.relu(F.conv2d(x.permute(0, 3, 1, 2), filters, stride=2, padding=1))
    assert torch.allclose(layer(x).permute(0, 3, 1, 2), expected, atol=1e-12)


def test_statistics_are_over_all_units_or_over_the_channels_of_a_pixel_or_over_the_batch() -> None:
    rows = torch.randn(2 * 3 * 3, 4, dtype=torch.float64) * 3 + 1
    whole = rows.view(2, -1)
    deviation = (whole.var(1, correction=0, keepdim=True) + EPSILON).sqrt()
    expected = ((whole - whole.mean(1, keepdim=True)) / deviation).view(rows.shape)
    assert torch.allclose(picture_norm("layer", 3, 4).double()(rows), expected, atol=1e-12)
    for norm, axis in (("channels", 1), ("batch", 0)):
        deviation = (rows.var(axis, correction=0, keepdim=True) + EPSILON).sqrt()
        expected = (rows - rows.mean(axis, keepdim=True)) / deviation
        found = picture_norm(norm, 3, 4).double()(rows)  # type: ignore[arg-type]
        assert torch.allclose(found, expected, atol=1e-12)


def test_batch_norm_without_a_recurrence_learns_what_it_serves() -> None:
    norm = picture_norm("batch", 3, 4).double()
    rows = torch.randn(90, 4, dtype=torch.float64) * 3 + 1
    for _ in range(200):
        trained = norm(rows)
    served = norm.eval()(rows)
    # Of the same rows over and over, but the served variance is the unbiased one.
    assert torch.allclose(served * (90 / 89) ** 0.5, trained, atol=1e-6)


def test_training_that_sees_pictures_upside_down_turns_the_report_red(
    laboratory: Callable[[str, str], Laboratory], tmp_path: Path
) -> None:
    found = laboratory("pictures", "layer")
    task = found.trained("layer", 0)
    (part,) = found.experiment.parts(task)

    def upside_down(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> object:
        return part.trained(model, {"picture": inputs["picture"].flip(1)})

    wrong = replace(part, trained=upside_down)  # type: ignore[arg-type]
    report = compare(PartGraph(wrong, task.model, tmp_path), task.model)
    assert [finding.name for finding in report if not finding.holds] == [
        "model, structure",
        "model, rounding",
    ]
