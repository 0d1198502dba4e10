"""The sampler against a plain numpy one: inverse CDF in byte order, options as thresholds."""

import numpy as np
import pytest
import torch

from contract.text import FILTERS, NEUTRAL
from models.generation import LanguageStep
from models.language import LanguageConfig, LanguageModel
from models.sampling import Filters, Options, sample

V = 256


def logits(rows: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, V, generator=torch.Generator().manual_seed(seed)) * 3


def options(rows: int, temperature: float = 1.0) -> Options:
    return Options(torch.full((rows,), 1 / temperature), torch.zeros(rows, V))


def filters(rows: int, min_p: float = 0.0, top_k: int = V, top_p: float = 1.0) -> Filters:
    least = torch.tensor(min_p).log()
    return Filters(least.expand(rows), torch.full((rows,), top_k), torch.full((rows,), top_p))


def kept(values: torch.Tensor, opts: Options, filt: Filters | None, draws: int = 4096) -> set[int]:
    """Every symbol that some uniform of a fine grid draws, for one row of logits."""
    grid = (torch.arange(draws) + 0.5) / draws
    many = Options(*(o.expand(draws, *o.shape[1:]) for o in opts))
    wide = Filters(*(f.expand(draws) for f in filt)) if filt else None
    return set(sample(values.expand(draws, V), grid, many, wide).tolist())


def test_a_draw_is_the_inverse_cdf_in_byte_order() -> None:
    rows = 500
    z = logits(rows).double()
    u = torch.rand(rows, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    drawn = sample(z, u, Options(*(o.double() for o in options(rows, temperature=0.5))), None)
    p = np.exp(z.numpy() / 0.5)
    cumulative = (p / p.sum(-1, keepdims=True)).cumsum(-1)
    expected = [int((c <= x).sum()) for c, x in zip(cumulative, u.numpy(), strict=True)]
    assert drawn.tolist() == expected


def test_the_ends_of_the_unit_interval_draw_possible_symbols() -> None:
    z = torch.full((2, V), -torch.inf)
    z[:, 100] = 0.0
    z[:, 150] = 0.5
    u = torch.tensor([2**-24, 1 - 2**-24])
    assert sample(z, u, options(2), None).tolist() == [100, 150]


def test_a_vanishing_temperature_and_a_min_p_of_one_are_greedy_to_the_last_bit() -> None:
    z = torch.zeros(1, V)
    z[0, 7] = 1.0
    z[0, 200] = 1.0 + 2**-23  # the next float32
    assert kept(z, options(1, temperature=2.0**-60), None) == {200}
    assert kept(z, options(1), filters(1, min_p=1.0)) == {200}


def test_min_p_keeps_what_is_probable_enough_beside_the_best() -> None:
    z = logits(1)
    p = z.softmax(-1)
    expected = set(torch.nonzero(p[0] >= 0.2 * p.max()).flatten().tolist())
    assert kept(z, options(1), filters(1, min_p=0.2)) == expected


@pytest.mark.parametrize("top_k", [1, 2, 5, 17])
def test_top_k_keeps_the_k_most_probable(top_k: int) -> None:
    z = logits(1) / 3
    expected = set(z[0].topk(top_k).indices.tolist())
    assert kept(z, options(1), filters(1, top_k=top_k)) == expected


@pytest.mark.parametrize("top_p", [0.01, 0.3, 0.6])
def test_top_p_keeps_the_fewest_symbols_that_reach_the_mass(top_p: float) -> None:
    z = logits(1)
    p, order = z[0].double().softmax(-1).sort(descending=True)
    count = int((p.cumsum(-1) < top_p).sum()) + 1
    assert kept(z, options(1), filters(1, top_p=top_p)) == set(order[:count].tolist())


def test_top_p_leaves_out_what_begins_where_the_mass_is_reached() -> None:
    z = torch.full((1, V), -torch.inf)
    z[0, [7, 70, 200]] = torch.tensor([0.5, 1.0, 0.5]).log()  # of 2: exact, as all sums are
    assert kept(z, options(1), filters(1, top_p=0.5)) == {70}
    assert kept(z, options(1), filters(1, top_p=0.5 + 2**-24)) == {7, 70, 200}


def test_options_that_keep_everything_draw_the_same_with_and_without_a_sort() -> None:
    rows = 2000
    z, u = logits(rows, 3), torch.rand(rows, generator=torch.Generator().manual_seed(4))
    plain = sample(z, u, options(rows), None)
    assert torch.equal(plain, sample(z, u, options(rows), filters(rows)))


def test_a_logit_bias_forbids_and_forces() -> None:
    z = logits(1)
    forbidden = options(1)._replace(logit_bias=torch.zeros(1, V))
    best = int(z.argmax())
    forbidden.logit_bias[0, best] = -100
    assert best not in kept(z, forbidden, None)
    forced = options(1)._replace(logit_bias=torch.zeros(1, V))
    forced.logit_bias[0, 42] = 100
    assert kept(z, forced, None) == {42}


def test_a_step_takes_the_options_of_the_contract_in_the_order_of_the_sampler() -> None:
    model = LanguageModel(LanguageConfig(units=2, embedding=2))
    plain, filtered = (
        tuple(port.name for port in LanguageStep(model, filtered=with_filters).row_ports)
        for with_filters in (False, True)
    )
    assert plain == Options._fields
    assert filtered == Options._fields + Filters._fields == tuple(NEUTRAL)
    assert Filters._fields == FILTERS


def test_a_step_emits_what_is_forced_on_it_or_else_what_it_draws() -> None:
    """As the state it leaves and as an output; a text begins as if a line had ended."""
    torch.manual_seed(0)
    step = LanguageStep(LanguageModel(LanguageConfig(units=3, embedding=2)), filtered=False)
    state, given = step.initial_state(2), torch.tensor([7, 7])
    assert state[0].tolist() == [ord("\n")] * 2
    uniform, force = torch.full((2,), 0.5), torch.tensor([True, False])
    token, *_, following, logits = step(*state, given, force, uniform, *options(2))
    drawn = sample(logits, uniform, options(2), None).tolist()
    assert 7 not in drawn
    assert token.tolist() == following.tolist() == [7, drawn[1]]


def test_neutral_filters_leave_no_symbol_out_however_improbable() -> None:
    """The second is lost in the sum of all in order of their mass, not in that of the bytes."""
    z = torch.full((1, V), -torch.inf)
    z[0, [7, 70, 200]] = torch.tensor([1e-7, 2e-8, 1.0]).log()
    u = torch.tensor([1.1e-7])
    assert [sample(z, u, options(1), filt).item() for filt in (None, filters(1))] == [70, 70]
