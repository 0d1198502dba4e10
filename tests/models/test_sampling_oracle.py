"""The sampler against a plain one that takes symbol after symbol, under all mixtures of options."""

import itertools
import math
from functools import cache

import pytest
import torch

from contract.text import GREEDY
from models.sampling import Filters, Options, sample

_V, _ROWS = 256, 12
_TEMPERATURES, _TOP_KS, _TOP_PS = (0.4, 1.0, 1.9), (2, 7, 100, _V), (0.2, 0.6, 0.95, 1.0)
_MIN_PS = (0.0, 0.02, 0.5)
_EVERY = list(itertools.product(_TEMPERATURES, _TOP_KS, _TOP_PS, _MIN_PS))


@cache  # which filters are asked for makes no difference to them
def _probabilities(
    logits: tuple[float, ...], temperature: float, bias: tuple[float, ...]
) -> tuple[list[float], list[int]]:
    """Of every symbol, and the symbols from the likeliest on."""
    scores = [(z + b) / temperature for z, b in zip(logits, bias, strict=True)]
    best = max(scores)
    mass = [math.exp(score - best) for score in scores]
    total = math.fsum(mass)
    p = [m / total for m in mass]
    return p, sorted(range(len(p)), key=lambda symbol: -p[symbol])


def _plain(
    logits: list[float], uniform: float, temperature: float, bias: list[float],
    top_k: int = _V, top_p: float = 1.0, min_p: float = 0.0,
) -> int:  # fmt: skip
    """The symbol drawn, by the words of the API one after the other, in Python's own floats."""
    p, order = _probabilities(tuple(logits), temperature, tuple(bias))
    kept, before = set(), 0.0
    for rank, symbol in enumerate(order):
        if rank < top_k and (before < top_p or top_p == 1) and p[symbol] >= min_p * p[order[0]]:
            kept.add(symbol)
        before += p[symbol]
    left = math.fsum(p[symbol] for symbol in kept)
    reached = 0.0
    for symbol in sorted(kept):
        reached += p[symbol] / left
        if reached >= uniform:
            return symbol
    return max(kept)


@pytest.fixture(scope="module")
def rows() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits from flat to steep, biases, and uniforms."""
    generator = torch.Generator().manual_seed(3)
    steep = torch.linspace(0.3, 3.0, _ROWS, dtype=torch.float64)[:, None]
    logits = torch.randn(_ROWS, _V, generator=generator, dtype=torch.float64) * steep
    bias = torch.randn(_ROWS, _V, generator=generator, dtype=torch.float64)
    return logits, bias, torch.rand(_ROWS, generator=generator, dtype=torch.float64)


def _drawn(
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor], temperature: float, *filters: float
) -> list[int]:
    logits, bias, uniform = rows
    options = Options(torch.full((_ROWS,), 1 / temperature, dtype=torch.float64), bias)
    if not filters:
        return sample(logits, uniform, options, None).tolist()
    top_k, top_p, min_p = filters
    log_min_p = torch.full((_ROWS,), min_p, dtype=torch.float64).log()
    asked = Filters(
        log_min_p, torch.full((_ROWS,), int(top_k)), torch.full((_ROWS,), top_p).double()
    )
    return sample(logits, uniform, options, asked).tolist()


def _expected(
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor], temperature: float, *filters: float
) -> list[int]:
    asked = dict(zip(("top_k", "top_p", "min_p"), filters, strict=False))
    return [
        _plain(z, u, temperature, b, **asked)  # type: ignore[arg-type]
        for z, b, u in zip(*(t.tolist() for t in rows), strict=True)
    ]


@pytest.mark.parametrize("temperature", [0.25, 0.7, 1.0, 2.0])
def test_every_draw_without_filters_is_the_plain_one(
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor], temperature: float
) -> None:
    assert _drawn(rows, temperature) == _expected(rows, temperature)


@pytest.mark.parametrize("temperature", _TEMPERATURES)
def test_every_draw_with_filters_is_the_plain_one(
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor], temperature: float
) -> None:
    for _, *filters in (options for options in _EVERY if options[0] == temperature):
        # A single precision 0.2 is not 0.2: the plain one gets what the graph gets.
        filters[1] = float(torch.tensor(filters[1]))
        assert _drawn(rows, temperature, *filters) == _expected(rows, temperature, *filters)


def test_the_options_of_a_row_are_its_own(
    rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    logits, bias, uniform = rows
    asked = _EVERY[::13]
    temperature, top_k, top_p, min_p = (
        torch.tensor(column, dtype=torch.float64) for column in zip(*asked, strict=True)
    )
    assert all(len(column.unique()) > 2 for column in (temperature, top_k, top_p, min_p))
    drawn = sample(
        logits, uniform, Options(1 / temperature, bias), Filters(min_p.log(), top_k.long(), top_p)
    )
    together = zip(*(t.tolist() for t in rows), asked, strict=True)
    assert drawn.tolist() == [_plain(z, u, t, b, *more) for z, b, u, (t, *more) in together]


@pytest.mark.parametrize("best", [2.0**-6, 0.1, 1.0, 30.0])
def test_temperature_zero_never_draws_the_next_float32_below_the_best(best: float) -> None:
    logits = torch.full((3, _V), -1.0)
    logits[:, 200] = best
    logits[:, [3, 250]] = torch.nextafter(torch.tensor(best), torch.tensor(0.0))
    uniform = torch.tensor([2.0**-24, 0.5, 1 - 2.0**-24])
    options = Options(torch.full((3,), GREEDY), torch.zeros(3, _V))
    assert sample(logits, uniform, options, None).tolist() == [200] * 3
