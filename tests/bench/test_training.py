"""The training benchmark compares what it says: three sides that do the same work."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bench import training
from bench.training import WARM_UP_UPDATES, Row, models, time_updates


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
    assert isinstance(sides["naive"].stack, training.NaiveStack)  # and not ours once more
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


def test_an_update_of_each_side_is_one_of_all_its_weights(tmp_path: Path) -> None:
    """A peer that learned less of itself would be done sooner, or later."""
    for name, model in models(8).items():
        before = {n: p.detach().clone() for n, p in model.named_parameters()}
        training._updates(model, 4, 5, tmp_path / name)()
        moved = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
        assert (moved, model.training) == (before.keys(), True), name


def test_a_measurement_gives_a_row() -> None:
    """Every side trains, and ratios agree with rates."""
    row = time_updates(16, 1, rounds=3, batch=4, steps=5)
    assert isinstance(row, Row)
    assert min(row.ours_per_s, row.lstm_per_s, row.naive_per_s) > 0
    assert 0 < row.to_lstm_p10 <= row.to_lstm_median
    assert 0 < row.to_naive_p10 <= row.to_naive_median


def test_rates_are_characters_a_second_and_ratios_how_many_times_as_fast_we_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first two updates, which are slower, do not count."""
    now_s = [0.0]
    costs_s = {"ours": 0.5, "lstm": 0.25, "naive": 2.0}

    def updates(model: object, batch: int, steps: int, run: Path) -> Callable[[], object]:
        turns = count()

        def update() -> None:
            now_s[0] += costs_s[run.name] if next(turns) >= WARM_UP_UPDATES else 100.0

        return update

    monkeypatch.setattr(training, "_updates", updates)
    monkeypatch.setattr(training, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    threads = list[int]()
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    row = time_updates(8, 3, rounds=1, batch=4, steps=10)
    assert threads == [row.threads] == [3]
    assert (row.ours_per_s, row.lstm_per_s, row.naive_per_s) == (80.0, 160.0, 20.0)
    assert (row.to_lstm_median, row.to_naive_median) == (0.5, 4.0)


@pytest.mark.parametrize(("full", "rounds"), [(True, [40, 16, 6]), (False, [13, 5, 2])])
def test_a_quick_run_has_a_third_of_the_updates(
    full: bool, rounds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[int, int, int]]()

    def timed(units: int, threads: int, rounds: int) -> Row:
        asked.append((units, threads, rounds))
        return Row(units, threads, *[1.0] * 7)

    monkeypatch.setattr(training, "time_updates", timed)
    monkeypatch.setattr(training, "thread_counts", lambda: [1, 2])
    list(training.measure(full))
    sizes = list(zip((256, 512, 1024), rounds, strict=True))
    assert asked == [(units, threads, count) for threads in (1, 2) for units, count in sizes]
