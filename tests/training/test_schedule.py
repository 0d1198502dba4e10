"""What the loop does with its settings: the learning rate of every update, what is clipped, what
decays, which units dropout leaves out, and when a run ends.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from models.language import LanguageConfig, LanguageModel
from tests.training.tiny import Interrupted, stop_after
from training.config import TrainConfig
from training.loop import LOG, Trainer
from training.task import Batch
from training.text.data import Corpus
from training.text.task import LanguageTask

_UPDATES = 40


class Slope:
    """A task whose gradient is `steepness` in every direction, and that notes what it was given:
    the first of dropout's random numbers and the rate of every update."""

    updates_per_epoch = _UPDATES
    units_per_sequence = None

    def __init__(self, steepness: float = 1.0) -> None:
        self.model = nn.LayerNorm(3)  # a gain and a bias
        self.model.matrix = nn.Parameter(torch.ones(2, 3))
        self.steepness = steepness
        self.random: list[float] = []
        self.losses = iter(range(10**6))

    def batch(self, update: int) -> tuple[Batch, bool]:
        return (), False

    def initial_state(self) -> tuple[Tensor, ...]:
        return ()

    def loss(self, batch: Batch, state: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        self.random.append(torch.rand(()).item())
        return self.steepness * sum(p.sum() for p in self.model.parameters()), ()

    def validate(self) -> float:
        return float(next(self.losses))  # the first is the best


def _trainer(folder: Path, task: Slope | None = None, **settings: Any) -> Trainer:
    usual: dict[str, Any] = {"epochs": 1, "warmup_updates": 4, "weight_decay": 0.0}
    usual |= {"validate_every_epochs": 0.25, "patience_epochs": 10}
    return Trainer(task or Slope(), TrainConfig(**usual | settings), folder, {})


def _run_until(update: int, trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, update)
        with pytest.raises(Interrupted):
            trainer.run()


def _rates(trainer: Trainer) -> list[float]:
    rates: list[float] = []
    step = trainer.optimizer.step

    def noted(*args: Any, **kwargs: Any) -> Any:
        rates.extend({group["lr"] for group in trainer.optimizer.param_groups})
        return step(*args, **kwargs)

    trainer.optimizer.step = noted  # type: ignore[method-assign]
    trainer.run()
    return rates


def test_the_rate_warms_up_and_ends_at_nothing_along_a_cosine(tmp_path: Path) -> None:
    rates = _rates(_trainer(tmp_path, learning_rate=0.1))
    expected = [
        0.1 * min(1.0, (u + 1) / 4) * (1 + math.cos(math.pi * u / _UPDATES)) / 2
        for u in range(_UPDATES)
    ]
    assert rates == pytest.approx(expected, rel=1e-12)
    assert rates[-1] < 0.01 * max(rates)


def test_a_run_ends_with_its_epochs_and_is_validated_there(tmp_path: Path) -> None:
    trainer = _trainer(tmp_path, epochs=0.99, validate_every_epochs=0.29)  # 39.6 and 11.6 updates
    trainer.run()
    rows = [json.loads(line) for line in (tmp_path / LOG).read_text().splitlines()]
    assert [row["update"] for row in rows] == [12, 24, 36, 40]
    assert rows[-1]["learning_rate"] == 0  # that of an update which would come next


def test_a_time_limit_brings_the_rate_to_nothing_when_it_is_reached(tmp_path: Path) -> None:
    trainer = _trainer(tmp_path, learning_rate=0.1, warmup_updates=0, time_limit_s=100.0)
    for elapsed_s, part in ((0.0, 1.0), (50.0, 0.5), (100.0, 0.0), (120.0, 0.0)):
        trainer.progress.elapsed_s = elapsed_s
        assert trainer._learning_rate() == pytest.approx(0.1 * part, abs=1e-12)
        assert trainer._finished() is (part == 0)
    trainer.progress.elapsed_s, trainer.progress.update = 10.0, _UPDATES // 2
    assert trainer._learning_rate() == pytest.approx(0.05)


def test_a_resumed_run_has_the_time_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _trainer(tmp_path, time_limit_s=1e6)
    first.progress.elapsed_s = 1e6 - 100
    _run_until(15, first, monkeypatch)
    again = _trainer(tmp_path, time_limit_s=1e6)
    assert again.progress.elapsed_s >= 1e6 - 100
    again.run()
    assert again.progress.elapsed_s >= 1e6 - 100


@pytest.mark.parametrize(("steepness", "expected"), [(100.0, 0.5), (1e-3, 3e-3)])
def test_gradients_longer_than_the_limit_are_cut_to_it_and_others_left(
    tmp_path: Path, steepness: float, expected: float
) -> None:
    trainer = _trainer(tmp_path, Slope(steepness), clip_norm=0.5)
    trainer._update()
    gradients = [p.grad for p in trainer.weights.parameters.values() if p.grad is not None]
    length = math.sqrt(sum(float((g**2).sum()) for g in gradients))
    assert length == pytest.approx(min(expected, steepness * math.sqrt(12)), rel=1e-3, abs=5e-4)


def test_what_is_cut_is_the_mean_of_the_gradients_of_all_processes(tmp_path: Path) -> None:
    trainer = _trainer(tmp_path, Slope(100.0), clip_norm=0.5)

    def average(tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            tensor *= 1e-3  # others pull the other way

    trainer.group.average = average  # type: ignore[method-assign]
    trainer._update()
    gradient = trainer.weights.parameters["bias"].grad
    assert gradient is not None
    assert gradient.tolist() == pytest.approx([0.1] * 3, rel=1e-3)


def test_matrices_decay_and_gains_and_biases_do_not(tmp_path: Path) -> None:
    task = Slope(steepness=0.0)
    before = {n: p.detach().clone() for n, p in task.model.named_parameters()}
    trainer = _trainer(tmp_path, task, weight_decay=0.5, learning_rate=0.1, warmup_updates=0)
    trainer._update()
    after = dict(task.model.named_parameters())
    assert torch.allclose(after["matrix"], before["matrix"] * (1 - 0.1 * 0.5))
    assert torch.equal(after["weight"], before["weight"])
    assert torch.equal(after["bias"], before["bias"])
    assert {group["betas"] for group in trainer.optimizer.param_groups} == {(0.9, 0.99)}


def test_processes_share_their_gradients_their_running_statistics_and_their_loss(
    tmp_path: Path,
) -> None:
    task, shared = Slope(), list[Tensor]()
    task.model.register_buffer("running", torch.zeros(2))
    trainer = _trainer(tmp_path, task)
    trainer.group.average = shared.extend  # type: ignore[method-assign]
    loss = trainer._update()
    wanted = [loss, *(p.grad for p in task.model.parameters()), *task.model.buffers()]
    assert {id(tensor) for tensor in shared} == {id(tensor) for tensor in wanted}


def test_dropout_is_another_in_every_update_run_and_process(tmp_path: Path) -> None:
    seen: set[float] = set()
    for seed in (0, 1):
        for rank in (0, 1):
            task = Slope()
            trainer = _trainer(tmp_path / f"{seed}{rank}", task, seed=seed)
            trainer.group.rank = rank
            for _ in range(20):
                trainer._update()
            seen |= set(task.random)
    assert len(seen) == 2 * 2 * 20


def test_dropout_of_an_update_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    whole, part = Slope(), Slope()
    _trainer(tmp_path / "whole", whole).run()
    trainer = _trainer(tmp_path / "part", part)
    trainer.progress.update = 17
    torch.manual_seed(12345)
    trainer._update()
    assert part.random == whole.random[17:18]


def test_a_run_ends_when_it_has_learned_nothing_for_as_long_as_its_patience(
    tmp_path: Path,
) -> None:
    trainer = _trainer(tmp_path, epochs=10, patience_epochs=1)
    trainer.run()
    # Best at its first validation, after 10 updates; more than 40 since are too many.
    assert trainer.progress.best_update == 10
    assert trainer.progress.update == 60
    stuck = _trainer(tmp_path / "stuck", epochs=10, patience_epochs=1)
    stuck.task.losses = repeat(0)  # type: ignore[attr-defined]
    stuck.run()
    assert (stuck.progress.best_update, stuck.progress.update) == (10, 60)  # as good is no better
    patient = _trainer(tmp_path / "patient", epochs=2, patience_epochs=3)
    patient.run()
    assert patient.progress.update == 2 * _UPDATES


def test_what_is_done_again_after_an_interruption_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run_until(15, _trainer(tmp_path), monkeypatch)
    log = tmp_path / LOG
    first = log.read_text()
    ahead = json.dumps(json.loads(first) | {"update": 20, "validation_loss": -1.0})
    log.write_text(f"{first}{ahead}\n")  # as if the run had gone on after its last checkpoint
    _trainer(tmp_path).run()
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row["update"] for row in rows] == [10, 20, 30, 40]
    assert all(row["validation_loss"] >= 0 for row in rows)


def test_every_epoch_cuts_the_text_at_other_places() -> None:
    train, validation = Corpus("text", bytes(range(256)) * 20).split(0.1)
    config = LanguageConfig(units=4, embedding=2)
    task = LanguageTask(LanguageModel(config), train, validation, 3, 50, seed=1)
    firsts = []
    for epoch in range(8):
        (inputs, _), anew = task.batch(epoch * task.updates_per_epoch)
        assert anew
        firsts.append(int(inputs[0, 0]))
    assert len(set(firsts)) > 4
    other = replace(task, seed=2)
    others = [int(other.batch(epoch * task.updates_per_epoch)[0][0][0, 0]) for epoch in range(7)]
    assert others[0] != firsts[0]
    assert others != firsts[1:]


def test_settings_of_another_run_are_told_apart(tmp_path: Path) -> None:
    trainer = _trainer(tmp_path, learning_rate=0.1)
    assert trainer.facts["training"] == asdict(trainer.config)


def test_a_resumed_run_ends_where_one_that_was_never_interrupted_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patience of less than an interval is asked at validations, also by who begins between two."""
    usual: dict[str, Any] = {"epochs": 3, "patience_epochs": 0.3}
    whole = _trainer(tmp_path / "whole", **usual)
    whole.run()
    assert whole.progress.update == 30, "best at 10, stale for 20 of 12 allowed at 30"
    _run_until(24, _trainer(tmp_path / "again", **usual), monkeypatch)
    again = _trainer(tmp_path / "again", **usual)
    again.task.losses = iter(range(2, 10**6))  # type: ignore[attr-defined]
    again.run()
    assert again.progress.update == 30


def test_a_log_whose_last_line_was_cut_does_not_end_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run_until(25, _trainer(tmp_path), monkeypatch)
    with (tmp_path / LOG).open("a") as log:
        log.write('{"update": 2')
    _trainer(tmp_path).run()
    rows = [json.loads(line) for line in (tmp_path / LOG).read_text().splitlines()]
    assert [row["update"] for row in rows] == [10, 20, 30, 40]


@pytest.mark.parametrize(
    "row", ["{", "[1]", '{"update": 10}', '{"update": "10"}', "\xff", "[" * 100_000]
)
def test_a_log_with_a_row_that_is_none_is_named(tmp_path: Path, row: str) -> None:
    (tmp_path / LOG).write_bytes(f"{row}\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"log\.jsonl is no log of a run"):
        _trainer(tmp_path)


def test_the_loss_that_is_logged_is_the_mean_since_the_validation_before(tmp_path: Path) -> None:
    trainer, losses = _trainer(tmp_path, epochs=2), []
    update = trainer._update

    def noted() -> Tensor:
        losses.append(update())
        return losses[-1]

    trainer._update = noted  # type: ignore[method-assign]
    trainer.run()
    rows = [json.loads(line) for line in (tmp_path / LOG).read_text().splitlines()]
    means = torch.stack(losses).view(-1, 10).mean(1).tolist()
    assert [row["train_loss"] for row in rows] == pytest.approx(means)
    assert [row["epoch"] for row in rows] == [0.25 * (1 + number) for number in range(8)]


def test_a_run_is_resumed_whatever_its_optimiser_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that counts no steps too."""
    sgd = torch.optim.SGD
    monkeypatch.setattr(
        "training.loop._adamw", lambda parameters, _: sgd(parameters.values(), 0.1, momentum=0.9)
    )
    whole = _trainer(tmp_path / "whole")
    whole.run()
    _run_until(15, _trainer(tmp_path / "again"), monkeypatch)
    again = _trainer(tmp_path / "again")
    again.run()
    for name, parameter in again.weights.parameters.items():
        assert torch.equal(parameter, whole.weights.parameters[name])


def test_a_resumed_run_that_gets_no_better_keeps_the_best_weights_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _trainer(tmp_path)
    _run_until(25, first, monkeypatch)
    again = _trainer(tmp_path)
    again.task.losses = iter(range(2, 10**6))  # type: ignore[attr-defined]
    best = again.run()
    assert again.progress.best_update == 10
    assert all(torch.equal(best[name], weight) for name, weight in first.weights.best.items())
    assert not torch.equal(best["matrix"], again.weights.average["matrix"])


class Counted(Slope):
    """Its state says how many updates it has seen since the state began anew, which is at every
    fourth."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def batch(self, update: int) -> tuple[Batch, bool]:
        return (), update % 4 == 0

    def initial_state(self) -> tuple[Tensor, ...]:
        return tuple(torch.full((1,), float(number)) for number in range(12))

    def loss(self, batch: Batch, state: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        self.seen.append(int(state[2]) - 2)
        return super().loss(batch, state)[0], tuple(tensor + 1 for tensor in state)


def test_a_state_is_carried_on_until_it_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Counted(), Counted()
    _run_until(6, _trainer(tmp_path, first), monkeypatch)
    _trainer(tmp_path, second).run()
    assert first.seen + second.seen == [0, 1, 2, 3] * (_UPDATES // 4)


def test_a_run_is_saved_every_so_many_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves: list[None] = []
    clock, save = iter(range(10**6)), Trainer.save

    def slowly(trainer: Trainer) -> None:
        saves.append(save(trainer))
        for _ in range(4):  # seconds, which do not count
            next(clock)

    monkeypatch.setattr(Trainer, "save", slowly)
    with monkeypatch.context() as patch:
        # Not the clock of the process, which threads of other tests may ask too.
        own = SimpleNamespace(monotonic=lambda: float(next(clock)))
        patch.setattr("training.loop.time", own)
        _trainer(tmp_path, save_every_s=4.5, patience_epochs=1000).run()
    assert len(saves) == _UPDATES // 5  # the clock is asked once an update


def test_a_bar_goes_on_when_the_clock_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calendar = [7200.0]
    monkeypatch.setattr("tqdm.std.time", lambda: calendar[0])
    with _trainer(tmp_path)._bar() as bar:
        assert (bar.initial, bar.total, bar.desc) == (0, _UPDATES, tmp_path.name)
        bar.mininterval = 0.0
        calendar[0] -= 3600
        bar.update()
        assert bar.last_print_n == 1  # it was shown
        assert 0 <= bar.format_dict["elapsed"] < 60
