"""Characters per second of training on the CPU: `python -m bench.training [--threads N]`.

One update of the real training loop (forward, loss, backward, clipping, AdamW, weight averaging) of
a byte model with one LN-LSTM layer; beside it, in the same run and by turns, the same model with
`torch.nn.LSTM`, which has no norm, and with the loop one writes on the first day. The text is
random bytes: what an update costs does not depend on it.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from export.results import machine
from models.cells import State
from models.language import VOCABULARY, LanguageConfig, LanguageModel
from models.stack import Stack
from training.loop import TrainConfig, Trainer, keep_freed_memory, use_fast_float32
from training.task import LanguageTask

BATCH = 64
STEPS = 64
# Updates of each side per size, so that each size takes about half a minute on one core.
ROUNDS = {256: 40, 512: 16, 1024: 6}
WARM_UP_UPDATES = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One size. Rates are medians in characters per second; a ratio is of the two in each round."""

    units: int
    threads: int
    ours_per_s: float
    lstm_per_s: float
    naive_per_s: float
    to_lstm_median: float
    to_lstm_p10: float
    to_naive_median: float
    to_naive_p10: float


class PlainLSTM(nn.Module):
    """`torch.nn.LSTM` in the place of the stack."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.lstm = nn.LSTM(config.embedding, config.units)

    def initial_state(self, batch: int) -> State:
        zeros = self.lstm.weight_hh_l0.new_zeros(batch, self.lstm.hidden_size)
        return zeros, zeros

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, (h, c) = self.lstm(x, tuple(s.unsqueeze(0) for s in state))
        return y, (h.squeeze(0), c.squeeze(0))


class NaiveStack(Stack):
    """The same LN-LSTM, everything inside the loop, time steps found by indexing."""

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        outputs = []
        for t in range(len(x)):
            y, state = self.step(x[t], state)
            outputs.append(y)
        return torch.stack(outputs), state


def models(units: int) -> dict[str, LanguageModel]:
    """The three sides: the stack of a `LanguageModel`, and what stands in its place."""
    config = LanguageConfig(units=units)
    sides = {name: LanguageModel(config) for name in ("ours", "lstm", "naive")}
    sides["lstm"].stack = PlainLSTM(config)  # type: ignore[assignment]
    sides["naive"].stack.__class__ = NaiveStack
    return sides


def measure(units: int, threads: int, rounds: int, batch: int = BATCH, steps: int = STEPS) -> Row:
    """Time `rounds` updates of each side, by turns."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    use_fast_float32()
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            name: _updates(model, batch, steps, Path(folder, name))
            for name, model in models(units).items()
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(WARM_UP_UPDATES + rounds):
            for name, update in sides.items():
                start = time.perf_counter()
                update()
                if turn >= WARM_UP_UPDATES:
                    times[name].append(time.perf_counter() - start)
    rates = [batch * steps / statistics.median(times[n]) for n in ("ours", "lstm", "naive")]
    return Row(
        units,
        threads,
        *(round(rate, 1) for rate in rates),
        *_ratios(times["lstm"], times["ours"]),
        *_ratios(times["naive"], times["ours"]),
    )


def _updates(model: LanguageModel, batch: int, steps: int, run: Path) -> Callable[[], object]:
    text = torch.randint(VOCABULARY, (batch * steps * 8,))
    task = LanguageTask(model, text, text, batch, steps, seed=0)
    model.train()
    return Trainer(task, TrainConfig(), run, facts={})._update


def _ratios(peer: list[float], ours: list[float]) -> tuple[float, float]:
    """Median and tenth percentile of how many times as fast as the peer we are."""
    ratios = sorted(p / o for p, o in zip(peer, ours, strict=True))
    return round(statistics.median(ratios), 3), round(ratios[len(ratios) // 10], 3)


def main() -> None:
    """Print a row per size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, nargs="+", default=list(ROUNDS), choices=ROUNDS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--effort", type=float, default=1.0, help="times the usual updates")
    options = parser.parse_args()
    print(", ".join(f"{k} {v}" for k, v in machine().items()))
    print("characters per second of training, batch 64, 64 steps; ratios are ours to the other")
    print(f"{'units':>6}{'threads':>8}{'ours':>9}{'nn.LSTM':>9}{'naive':>9}", end="")
    print(f"{'to nn.LSTM':>12}{'p10':>7}{'to naive':>10}{'p10':>7}")
    for units in options.units:
        row = measure(units, options.threads, max(1, round(ROUNDS[units] * options.effort)))
        *counts, ratio, p10, naive, naive_p10 = asdict(row).values()
        widths = (6, 8, 9, 9, 9)
        print("".join(f"{c:{w}.0f}" for c, w in zip(counts, widths, strict=True)), end="")
        print(f"{ratio:12.3f}{p10:7.3f}{naive:10.3f}{naive_p10:7.3f}", flush=True)


if __name__ == "__main__":
    main()
