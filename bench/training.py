"""The section `training`: characters per second on the CPU.

One update of the real training loop (forward, loss, backward, clipping, AdamW, weight averaging) of
a byte model with one LN-LSTM layer; beside it, in the same run and by turns, the same model with
`torch.nn.LSTM`, which has no norm, and with the loop one writes on the first day. The text is
random bytes: what an update costs does not depend on it.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from bench.goal import Goal, judge
from bench.rows import percentiles
from bench.step import thread_counts
from contract.alphabets import VOCABULARY
from models.cells import State
from models.language import LanguageConfig, LanguageModel
from models.stack import Stack
from training.config import TrainConfig
from training.loop import Trainer
from training.machine import keep_freed_memory, use_fast_float32
from training.text.task import LanguageTask

# Updates of each side per size, so that each size takes about half a minute on one core.
ROUNDS = {256: 40, 512: 16, 1024: 6}
WARM_UP_UPDATES = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One size. Rates are medians in characters per second; a ratio is of the two in each round,
    how many times as fast as the other we are."""

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


def measure(full: bool) -> Iterator[tuple[str, Row] | Goal]:
    """Every size with every number of threads; a quick run has a third of the rounds."""
    rows = []
    for threads in thread_counts():
        for units, rounds in ROUNDS.items():
            rows.append(time_updates(units, threads, rounds if full else rounds // 3))
            yield "training", rows[-1]
    yield from goals(rows)


def goals(rows: Sequence[Row]) -> Iterator[Goal]:
    """The worst of all sizes and numbers of threads."""
    yield judge(
        "training against torch.nn.LSTM", "our characters per second over its, the worst size",
        "at least", 0.75, min(row.to_lstm_median for row in rows),
    )  # fmt: skip


def time_updates(units: int, threads: int, rounds: int, batch: int = 64, steps: int = 64) -> Row:
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
    rates = [round(batch * steps / statistics.median(taken), 1) for taken in times.values()]
    ratios = [_ratios(times[peer], times["ours"]) for peer in ("lstm", "naive")]
    return Row(units, threads, *rates, *ratios[0], *ratios[1])


def _updates(model: LanguageModel, batch: int, steps: int, run: Path) -> Callable[[], object]:
    text = torch.randint(VOCABULARY, (batch * steps * 8,))
    task = LanguageTask(model, text, text, batch, steps, seed=0)
    model.train()
    return Trainer(task, TrainConfig(), run, facts={})._update


def _ratios(peer: list[float], ours: list[float]) -> list[float]:
    """Median and tenth percentile."""
    return percentiles((p / o for p, o in zip(peer, ours, strict=True)), 0.5, 0.1, digits=3)
