"""The training benchmark compares what it says: three sides that do the same work."""

from collections.abc import Iterator

import pytest
import torch

from bench.training import Row, models, time_updates


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """What the measurement sets in PyTorch for its own process is put back."""
    threads, seed = torch.get_num_threads(), torch.get_rng_state()
    matmul = torch.backends.mkldnn.matmul
    precision = matmul.fp32_precision
    yield
    torch.set_num_threads(threads)
    torch.set_rng_state(seed)
    matmul.fp32_precision = precision


def test_the_naive_loop_computes_what_the_stack_computes() -> None:
    """From the same weights, outputs and gradients agree."""
    torch.manual_seed(0)
    sides = {name: model.double() for name, model in models(16).items()}
    sides["naive"].load_state_dict(sides["ours"].state_dict())
    tokens = torch.randint(256, (5, 3))
    results = []
    for name in ("ours", "naive"):
        logits, _ = sides[name](tokens, sides[name].initial_state(3))
        logits.square().sum().backward()
        results.append([logits, *(p.grad for p in sides[name].parameters())])
    for ours, naive in zip(*results, strict=True):
        assert torch.allclose(ours, naive, rtol=1e-9, atol=1e-10)


def test_the_peer_differs_from_us_in_its_norm_and_biases_alone() -> None:
    """The same matrices; PyTorch's LSTM has two biases, ours gains and biases of norms."""
    sides = models(16)
    shapes = {
        name: sorted(tuple(p.shape) for p in model.parameters() if p.dim() > 1)
        for name, model in sides.items()
    }
    assert shapes["ours"] == shapes["lstm"] == shapes["naive"]


def test_a_measurement_gives_a_row() -> None:
    """Every side trains, and ratios agree with rates."""
    row = time_updates(16, 1, rounds=3, batch=4, steps=5)
    assert isinstance(row, Row)
    assert min(row.ours_per_s, row.lstm_per_s, row.naive_per_s) > 0
    assert 0 < row.to_lstm_p10 <= row.to_lstm_median
    assert 0 < row.to_naive_p10 <= row.to_naive_median
