"""One training loop for every model: AdamW, warm-up and cosine, clipping, truncated
back-propagation with carried state, weight averaging, early stopping, exact resumption.

Run it through `python -m export train`; under `torchrun` it is data parallel.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from training import checkpoint
from training.bar import steady
from training.capture import gradients_of
from training.config import TrainConfig
from training.group import Group
from training.log import LOG, forget_rows_after
from training.machine import deferred_signals
from training.task import Calibrates, Task
from training.weights import Weights

CHECKPOINT = "checkpoint.safetensors"


@dataclass(slots=True)
class Progress:
    """Where a run stands; all of it travels in the checkpoint."""

    update: int = 0
    elapsed_s: float = 0.0
    best_loss: float = math.inf
    best_update: int = 0
    due: bool = False  # whether a validation is yet to be done
    temperature: float | None = None  # which the logits of what is kept were divided by


class Trainer:
    """Runs a task to the end in the folder `run`, from its checkpoint if it has one.

    `figures` tells what else the validation found, which goes to the log.
    """

    def __init__(
        self,
        task: Task,
        config: TrainConfig,
        run: Path,
        facts: dict[str, Any],
        figures: Callable[[], dict[str, float]] = dict,
    ) -> None:
        self.task, self.config, self.run_dir, self.figures = task, config, run, figures
        self.facts = facts | {"training": asdict(config)}
        self.progress = Progress()
        self._losses: list[Tensor] = []  # of the updates since the last validation
        self.total_updates = max(1, round(config.epochs * task.updates_per_epoch))
        self._every = max(1, round(config.validate_every_epochs * task.updates_per_epoch))
        self.state = task.initial_state()
        self.weights = Weights(task.model, config.blend)
        self.optimizer = _adamw(self.weights.parameters, config)
        self.group = Group(self.weights.device)
        if (run / CHECKPOINT).exists():
            self._restore()
        self._gradients = gradients_of(task, self.weights.parameters.values(), self.group.size == 1)
        self._require_the_same_update()
        run.mkdir(parents=True, exist_ok=True)
        if (run / LOG).exists() and self.group.rank == 0:
            # What is yet to be validated is logged then.
            forget_rows_after(run / LOG, self.progress.update - bool(self.progress.due))

    def run(self) -> dict[str, Tensor]:
        """Train; return the averaged weights of the best validation, or of the last."""
        self.task.model.train()
        began = time.monotonic() - self.progress.elapsed_s
        saved, save_now = time.monotonic(), False
        bar = self._bar()
        try:
            if self.progress.due:
                self._validate()
            while not self._finished():
                # Up to the next validation, which a resumed run has at the same updates.
                due_at = self.progress.update - self.progress.update % self._every + self._every
                due_at = min(due_at, self.total_updates)
                for _ in range(due_at - self.progress.update):
                    with deferred_signals():
                        if save_now:  # together: who is interrupted alone is waited for for ever
                            self.save()
                            saved = time.monotonic()
                        self._losses.append(self._update())
                        now_s = time.monotonic()
                        # All save together, and see the same time pass.
                        save_now, self.progress.elapsed_s = self.group.first_says(
                            now_s - saved > self.config.save_every_s, now_s - began
                        )
                        if self.progress.update == due_at or self._out_of_time():
                            self.progress.due = True
                    self.group.interrupt_if_told()
                    bar.update()
                    if self._out_of_time():
                        break
                train_loss = self._validate()
                bar.set_postfix(train=f"{train_loss:.3f}", best=f"{self.progress.best_loss:.4f}")
            if self.config.calibrated and self.progress.temperature is None:
                self._calibrate()
        finally:
            if self.group.shares(sys.exception()):
                with deferred_signals():  # a second one waits
                    self.save()  # first: whoever reads what the bar writes may have had enough
            bar.close()
        early = self.progress.update < self.total_updates and self._out_of_time()
        if early and self.group.rank == 0:
            self._warn_of_time()
        return self.weights.best

    def _bar(self) -> "tqdm[Any]":
        bar = tqdm(
            total=self.total_updates,
            initial=self.progress.update,
            desc=self.run_dir.resolve().name,
            unit="update",
            disable=self.group.rank > 0 or sys.stderr is None,
            mininterval=1.0,
        )
        return steady(bar)

    def _warn_of_time(self) -> None:
        print(
            f"warning: training.time_limit_s ({self.config.time_limit_s:.0f} s) ended the run "
            f"after {self.progress.update:,} of {self.total_updates:,} updates; with more time "
            "it would have learned more",
            file=sys.stderr,
        )

    def save(self) -> None:
        """Write the checkpoint. In data-parallel training every process takes part."""
        state = self.group.gather(self.state)
        if self.group.rank > 0:
            return
        weights, moments = self.weights, {}
        for name, parameter in weights.parameters.items():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                moments[f"moments.{name}.{key}"] = value
        tensors = {
            **checkpoint.prefixed(weights.parameters | weights.buffers, "model"),
            **checkpoint.prefixed(weights.average, "average"),
            **checkpoint.prefixed(weights.best, "best"),
            **{f"state.{i}": s for i, s in enumerate(state)},
            **moments,
        }
        if self._losses:
            tensors["losses"] = torch.stack(self._losses)
        facts = self.facts | {"progress": asdict(self.progress)}
        checkpoint.save(self.run_dir / CHECKPOINT, tensors, facts)

    def _restore(self) -> None:
        path = self.run_dir / CHECKPOINT
        tensors, facts = checkpoint.load(path)
        with checkpoint.understanding(path):
            progress = Progress(**facts.pop("progress"))
        checkpoint.require_same(path, facts, self.facts)
        tensors = {name: t.to(self.weights.device) for name, t in tensors.items()}
        average, best = checkpoint.group(tensors, "average"), checkpoint.group(tensors, "best")
        if average.keys() != self.weights.parameters.keys():
            with checkpoint.understanding(path):  # or a conversion would not either
                self.task.model.load_state_dict(best)
            raise ValueError(
                f"{path} is of a version that called its weights otherwise; convert it, train on "
                f"from that, or remove it"
            )
        self.progress = progress
        with checkpoint.understanding(path):
            self._take(tensors)

    def _take(self, tensors: dict[str, Tensor]) -> None:
        """The tensors of a checkpoint."""
        self.task.model.load_state_dict(checkpoint.group(tensors, "model"))
        self.weights.take(checkpoint.group(tensors, "average"), checkpoint.group(tensors, "best"))
        states = checkpoint.group(tensors, "state")
        self.state = self.group.part([states[str(i)] for i in range(len(states))])
        self._losses = list(tensors.get("losses", ()))
        for name, parameter in self.weights.parameters.items():
            moments = checkpoint.group(tensors, f"moments.{name}")
            if moments:
                # A single number, as a count of steps, is the CPU's with any optimiser.
                alone = {name: t.cpu() for name, t in moments.items() if not t.dim()}
                self.optimizer.state[parameter] = moments | alone

    def _update(self) -> Tensor:
        update, parameters = self.progress.update, self.weights.parameters.values()
        # Dropout is a function of seed, update and process, so resuming needs no generator state.
        torch.manual_seed(hash((self.config.seed, update, self.group.rank)) & 0x7FFFFFFF)
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        batch, anew = self.task.batch(update)
        if anew:
            self.state = self.task.initial_state()
        loss, self.state = self._gradients(batch, self.state)
        gradients = [p.grad for p in parameters if p.grad is not None]
        self.group.average((*gradients, *self.weights.buffers.values(), loss))
        torch.nn.utils.clip_grads_with_norm_(
            parameters, self.config.clip_norm, torch.nn.utils.get_total_norm(gradients)
        )
        self.optimizer.step()
        self.progress.update += 1
        self.weights.average_in(update, self.config.average_decay)
        return loss

    def _validate(self) -> float:
        """Validate and log; returns the mean training loss since the last time."""
        train_loss = torch.stack(self._losses).mean().item() if self._losses else math.nan
        with self.weights.swapped_in(self.weights.blended()):
            loss = self.task.validate()
        progress = self.progress
        if loss < progress.best_loss or self.config.keep == "last":
            # In this order: who is interrupted between the two validates again.
            self.weights.best = self.weights.averaged_model()
            progress.best_loss, progress.best_update = loss, progress.update
        if self.group.rank == 0:
            row = {
                "update": progress.update,
                "epoch": round(progress.update / self.task.updates_per_epoch, 3),
                "learning_rate": self._learning_rate(),
                "train_loss": train_loss,
                "validation_loss": loss,
                "elapsed_s": round(progress.elapsed_s, 1),
            } | self.figures()
            with (self.run_dir / LOG).open("a", encoding="utf-8") as log:
                log.write(json.dumps(row) + "\n")
        progress.due = False
        self._losses.clear()
        return train_loss

    def _calibrate(self) -> None:
        """Calibrate the weights that are kept, and validate them again."""
        assert isinstance(self.task, Calibrates)  # as its kind says
        with self.weights.swapped_in(self.weights.best):
            temperature, loss = self.task.calibrate(), self.task.validate()
            best = self.weights.copied(self.weights.best)
        # Together: what was kept without its temperature would be calibrated once more.
        with deferred_signals():
            self.weights.best = best
            self.progress.temperature, self.progress.best_loss = temperature, loss

    def _fraction_done(self) -> float:
        done = self.progress.update / self.total_updates
        limit = self.config.time_limit_s
        return done if limit is None else max(done, min(1.0, self.progress.elapsed_s / limit))

    def _learning_rate(self) -> float:
        warmup = min(1.0, (self.progress.update + 1) / max(1, self.config.warmup_updates))
        return (
            self.config.learning_rate
            * warmup
            * 0.5
            * (1 + math.cos(math.pi * self._fraction_done()))
        )

    def _require_the_same_update(self) -> None:
        """A checkpoint is on the machine of the first process, which others may not share."""
        if not self.group.agrees(self.progress.update):
            raise ValueError(
                f"{self.run_dir} stands at update {self.progress.update} here and elsewhere at "
                "another; every machine needs the checkpoint of the first"
            )

    def _out_of_time(self) -> bool:
        limit = self.config.time_limit_s
        return limit is not None and self.progress.elapsed_s >= limit

    def _finished(self) -> bool:
        progress = self.progress
        # As of the last validation: a resumed run, which may stand between two, ends where one
        # that was never interrupted does.
        validated = progress.update - progress.update % self._every
        stale = validated - progress.best_update
        patience = self.config.patience_epochs * self.task.updates_per_epoch
        return progress.update >= self.total_updates or self._out_of_time() or stale > patience


def _adamw(parameters: Mapping[str, Tensor], config: TrainConfig) -> torch.optim.AdamW:
    """Weight decay on matrices only: shrinking a gain or a bias has no meaning under a norm."""
    groups = [
        {
            "params": [p for p in parameters.values() if p.dim() > 1],
            "weight_decay": config.weight_decay,
        },
        {"params": [p for p in parameters.values() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.99), foreach=True)
