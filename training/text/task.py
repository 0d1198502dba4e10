"""Text as a training task: segments of parallel streams, the state carried across.

Shapes: T time, B batch, N bytes, V = 256 symbols.
"""

import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from contract.alphabets import START_TOKEN
from models.cells import State
from models.language import LanguageModel
from training.task import Batch, Diverged
from training.text.data import require_segments, streams

# Streams of the validation data.
_SIDE_BY_SIDE = 16
# From 1, where it begins, to far beyond the digits that matter; at most a factor of 2 each.
_NEWTON_STEPS = 8
_CLOSE = 1e-6


@dataclass
class LanguageTask:
    """Next-byte prediction over B parallel streams, segments of T steps, state carried across.

    Every epoch starts at another offset, so segment borders fall elsewhere each time. Under batch
    norm every segment starts from the zero state, because the statistics are of steps counted from
    there: carried on, a state would pass the first steps once an epoch. In
    data-parallel training process `rank` of `world` takes every `world`-th stream.
    """

    model: LanguageModel
    train_tokens: Tensor
    validation_tokens: Tensor
    batch_size: int
    steps: int
    seed: int
    rank: int = 0
    world: int = 1
    units_per_sequence: ClassVar[None] = None  # a text is one long one

    def __post_init__(self) -> None:
        require_segments(self.train_tokens, self.batch_size, self.steps, "training")
        require_segments(self.validation_tokens, 1, 1, "validation")
        if self.model.config.norm == "batch":
            self._require_statistics()
        longest_offset = min(
            self.steps, len(self.train_tokens) - self.batch_size * (self.steps + 1)
        )
        self._longest_offset = max(longest_offset, 0)
        shortest = (len(self.train_tokens) - self._longest_offset) // self.batch_size
        self.updates_per_epoch = (shortest - 1) // self.steps
        self._epoch = -1
        self._streams = torch.empty(0)

    def batch(self, update: int) -> tuple[Batch, bool]:
        epoch, index = divmod(update, self.updates_per_epoch)
        if epoch != self._epoch:
            offset = random.Random(f"{self.seed}/{epoch}").randint(0, self._longest_offset)
            device = self.model.readout.weight.device
            everyone = streams(self.train_tokens[offset:], self.batch_size)
            self._streams = everyone[:, self.rank :: self.world].to(device)
            self._epoch = epoch
        start = index * self.steps
        segment = self._streams[start : start + self.steps + 1]
        anew = index == 0 or self.model.config.norm == "batch"
        return (segment[:-1], segment[1:]), anew

    def _require_statistics(self) -> None:
        """Batch norm learns those of every step it keeps, from two rows or more."""
        longest = self.model.config.longest_step
        if longest > self.steps:
            raise ValueError(
                f"model.longest_step is {longest}; with batch norm it must be 1 to batch.steps, "
                f"which is {self.steps}"
            )
        if self.batch_size < 2 * self.world:
            raise ValueError(
                f"batch.rows is {self.batch_size}; batch norm needs 2 for each of "
                f"{self.world} processes"
            )

    @property
    def capturable(self) -> bool:
        # Running statistics are learned step by step, and which step it is the host is asked.
        return self.model.config.norm != "batch"

    def padded(self, batch: Batch) -> Batch:
        return batch

    def initial_state(self) -> State:
        return self.model.initial_state(len(range(self.rank, self.batch_size, self.world)))

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        inputs, targets = batch
        logits, state = self.model(inputs, state)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten()), state

    @torch.no_grad()
    def validate(self) -> float:
        total, count = 0.0, 0
        for logits, targets in self._validation():
            total += F.cross_entropy(logits, targets, reduction="sum").item()
            count += len(targets)
        if not math.isfinite(total):
            raise Diverged(
                "the validation loss is not finite; lower the learning rate, or the dropout if it "
                "is high"
            )
        return total / count

    @torch.no_grad()
    def calibrate(self) -> float:
        # The loss is convex in the inverse temperature: Newton's steps, from what is there.
        inverse = 1.0
        for _ in range(_NEWTON_STEPS):
            slope, curvature = 0.0, 0.0
            for logits, targets in self._validation():
                scores = logits.double()
                p = torch.softmax(scores * inverse, 1)
                mean = (p * scores).sum(1, keepdim=True)
                slope += (mean - scores.gather(1, targets.unsqueeze(1))).sum().item()
                curvature += (p * (scores - mean).square()).sum().item()
            before = inverse
            # From far away a step may lead too far; that of a model without a doubt has no end.
            step = slope / max(curvature, sys.float_info.min)
            inverse = min(max(before - step, before / 2), before * 2)
            if abs(inverse - before) < _CLOSE * before:
                break
        for parameter in self.model.readout.parameters():
            parameter.mul_(inverse)
        return 1 / inverse

    def _validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits `(N, V)` and targets `(N,)` of the validation data, part by part, dropout off."""
        # As many parallel streams as keep each at least two segments long.
        width = max(1, min(_SIDE_BY_SIDE, len(self.validation_tokens) // (2 * self.steps)))
        targets = streams(self.validation_tokens, width).to(self.model.readout.weight.device)
        inputs = torch.cat([torch.full_like(targets[:1], START_TOKEN), targets[:-1]])
        state = self.model.initial_state(width)
        self.model.eval()
        for x, y in zip(inputs.split(self.steps), targets.split(self.steps), strict=True):
            logits, state = self.model(x, state)
            yield logits.flatten(0, 1), y.flatten()
        self.model.train()
