"""Selective attention: filters against hand-made ones, gradients against finite differences."""

import math

import pytest
import torch
from torch import Tensor

from models.glimpse import Filters, GaussianGrid, Place, extract, insert

_SIDE, _UNITS, _FILTERS = 7, 3, 3


def _grid(filters: int = _FILTERS) -> GaussianGrid:
    torch.manual_seed(0)
    return GaussianGrid(_UNITS, _SIDE, filters).double()


def _placed(x: float, y: float, stride: float, variance: float) -> Place:
    def one(*values: float) -> Tensor:
        return torch.tensor([values], dtype=torch.float64)

    return Place(one(x, y), one(stride), one(1 / (2 * variance)), one(1.0))


def test_filters_are_those_of_the_paper() -> None:
    filters = _grid().filters_at(_placed(3.0, 5.5, 1.5, 0.8))
    for bank, centre in zip(filters, (3.0, 5.5), strict=True):
        for i in range(1, _FILTERS + 1):
            mean = centre + (i - _FILTERS / 2 - 0.5) * 1.5
            bumps = [math.exp(-((a - mean) ** 2) / (2 * 0.8)) for a in range(1, _SIDE + 1)]
            hand_made = torch.tensor(bumps, dtype=torch.float64) / sum(bumps)
            torch.testing.assert_close(bank[0, i - 1], hand_made, rtol=1e-12, atol=1e-15)


def test_narrow_filters_pick_single_pixels() -> None:
    picture = torch.arange(49.0, dtype=torch.float64).view(1, 1, _SIDE, _SIDE)
    place = _placed(3.0, 4.0, 2.0, 1e-4)
    filters = _grid().filters_at(place)
    seen = extract(picture, filters, place.intensity)
    # Across: pixels 1, 3, 5; down: 2, 4, 6, counted from 1.
    torch.testing.assert_close(seen[0, 0], picture[0, 0, 1:6:2, 0:5:2], rtol=0, atol=1e-12)
    left = insert(seen[:, 0], filters, place.intensity)
    torch.testing.assert_close(left[0, 1:6:2, 0:5:2], seen[0, 0], rtol=0, atol=1e-12)


def test_what_is_seen_is_as_intense_and_what_is_left_as_faint() -> None:
    filters = _grid().filters_at(_placed(3.0, 4.0, 2.0, 0.5))
    torch.manual_seed(1)
    picture, patch = torch.randn(1, 1, _SIDE, _SIDE).double(), torch.randn(1, 3, 3).double()
    one, two = (torch.full((1, 1), value, dtype=torch.float64) for value in (1.0, 2.0))
    for double, single in (
        (extract(picture, filters, two), extract(picture, filters, one)),
        (insert(patch, filters, one), insert(patch, filters, two)),
    ):
        torch.testing.assert_close(double, 2 * single)


def test_a_state_of_zeros_cuts_the_picture_into_cells() -> None:
    grid = _grid()
    place = grid.place(torch.zeros(1, _UNITS, dtype=torch.float64))
    assert place.centre.tolist() == [[4.0, 4.0]]
    assert place.stride.item() == pytest.approx(_SIDE / _FILTERS)
    with torch.no_grad():
        grid.place_of.bias.zero_()  # as the paper has it, outermost filters on outermost pixels
    widest = grid.place(torch.zeros(1, _UNITS, dtype=torch.float64)).stride
    assert widest.item() == pytest.approx((_SIDE - 1) / (_FILTERS - 1))
    assert place.intensity.item() == 1
    faint = GaussianGrid(_UNITS, _SIDE, _FILTERS, 0.25).place(torch.zeros(1, _UNITS)).intensity
    assert faint.item() == pytest.approx(0.25)
    deviation = (1 / (2 * place.sharpness.item())) ** 0.5
    assert deviation == pytest.approx(_SIDE / _FILTERS / 2)


@pytest.mark.parametrize("centre", [-300.0, 400.0])
def test_a_grid_far_outside_is_finite(centre: float) -> None:
    for bank in _grid().filters_at(_placed(centre, centre, 1.0, 0.1)):
        torch.testing.assert_close(bank.sum(-1), torch.ones(1, _FILTERS, dtype=torch.float64))


def test_no_filter_holds_a_subnormal_number() -> None:
    place = Place(*(part.float() for part in _placed(14.0, 14.0, 5.0, 1.0)))
    for bank in GaussianGrid(_UNITS, 28, 5).filters_at(place):
        assert bank.min() >= torch.finfo(torch.float32).tiny


def _through(h: Tensor, picture: Tensor, patch: Tensor, *weights: Tensor) -> Tensor:
    """Look and leave by one grid, as DRAW does, with weights of the map as arguments."""
    grid = _grid()
    names = dict(zip(("place_of.weight", "place_of.bias"), weights, strict=True))
    place: Place = torch.func.functional_call(
        _Placer(grid), {f"grid.{n}": w for n, w in names.items()}, h
    )
    filters: Filters = grid.filters_at(place)
    seen = extract(picture, filters, place.intensity)
    left = insert(patch, filters, place.intensity)
    return torch.cat([seen.flatten(), left.flatten()])


class _Placer(torch.nn.Module):
    def __init__(self, grid: GaussianGrid) -> None:
        super().__init__()
        self.grid = grid

    def forward(self, h: Tensor) -> Place:
        return self.grid.place(h)


def test_gradients_are_those_of_finite_differences() -> None:
    generator = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> Tensor:
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return (0.3 * drawn).requires_grad_()

    arguments = (
        normal(2, _UNITS), normal(2, 1, _SIDE, _SIDE), normal(2, _FILTERS, _FILTERS),
        normal(5, _UNITS), normal(5),
    )  # fmt: skip
    assert torch.autograd.gradcheck(_through, arguments, eps=1e-6, atol=1e-7, rtol=1e-6)
