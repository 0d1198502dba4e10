"""The weights a run ends with: averages over its updates, those of the best validation."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.training.tiny import tensors, tiny_recipe, undrawn
from training import checkpoint
from training.config import Place, Recipe
from training.kinds import KINDS
from training.loop import CHECKPOINT, Trainer
from training.run import carry_out

Weights = dict[str, Tensor]
_DECAY = 0.9
_BEST = 20
pytestmark = pytest.mark.usefixtures("_undrawn")


def _recipe(corpus: Path, **training: object) -> Recipe:
    """Half an epoch of the tiny one with a single layer, validated ten times."""
    recipe = tiny_recipe(corpus, epochs=0.5, validate_every_epochs=0.05, **training)
    return replace(recipe, model=replace(recipe.model, layers=1))


class Watched:
    """The parameters before the first update, after every one, and the averages at validations."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.after: list[Weights] = []
        self.validated: dict[int, Weights] = {}
        update, validate = Trainer._update, Trainer._validate

        def watched_update(trainer: Trainer) -> Tensor:
            now = _copied(trainer)
            if self.after:  # validating leaves the weights being trained as they were
                assert all(torch.equal(now[n], t) for n, t in self.after[-1].items())
            else:
                self.after.append(now)
            loss = update(trainer)
            self.after.append(_copied(trainer))
            return loss

        def watched_validate(trainer: Trainer) -> float:
            def judged() -> float:
                self.validated[trainer.progress.update] = _copied(trainer)
                return 1.0 + abs(trainer.progress.update - _BEST)

            with pytest.MonkeyPatch.context() as inner:
                inner.setattr(trainer.task, "validate", judged)
                return validate(trainer)

        patch.setattr(Trainer, "_update", watched_update)
        patch.setattr(Trainer, "_validate", watched_validate)

    def average(self, updates: int) -> Weights:
        """By the definition: a young average follows closely."""
        average = {name: t.double() for name, t in self.after[0].items()}
        for update in range(updates):
            decay = min(_DECAY, (1 + update) / (10 + update))
            for name, t in self.after[update + 1].items():
                average[name] = decay * average[name] + (1 - decay) * t.double()
        return average


def _copied(trainer: Trainer) -> Weights:
    return {name: p.detach().clone() for name, p in trainer.task.model.named_parameters()}


def _distance(a: Weights, b: Weights) -> float:
    assert a.keys() == b.keys()
    return max((a[n].double() - b[n].double()).abs().max().item() for n in a)


@pytest.fixture(scope="module")
def watched(
    corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Watched, Weights, dict[str, int]]:
    """A run that is told its best validation is after update `_BEST`; its tensors and progress."""
    folder = tmp_path_factory.mktemp("watched") / "run"
    recipe = _recipe(corpus, average_decay=_DECAY)
    with pytest.MonkeyPatch.context() as patch, undrawn():
        watched = Watched(patch)
        carry_out(recipe, folder, "cpu", Path())
    return watched, tensors(folder), checkpoint.load(folder / CHECKPOINT)[1]["progress"]


def test_every_update_goes_into_the_average(
    watched: tuple[Watched, Weights, dict[str, int]],
) -> None:
    seen, saved, progress = watched
    average, last = checkpoint.group(saved, "average"), checkpoint.group(saved, "model")
    assert len(seen.after) == progress["update"] + 1 > 20
    assert _distance(average, seen.average(progress["update"])) < 1e-5
    assert _distance(average, last) > 1e-3
    assert _distance(last, seen.after[-1]) == 0


def test_what_is_validated_is_the_average(
    watched: tuple[Watched, Weights, dict[str, int]],
) -> None:
    seen, _, progress = watched
    assert len(seen.validated) > 5
    assert max(seen.validated) == progress["update"]
    for update, weights in seen.validated.items():
        assert _distance(weights, seen.average(update)) < 1e-5


def test_the_best_weights_are_the_average_of_the_best_validation_not_of_the_last(
    watched: tuple[Watched, Weights, dict[str, int]],
) -> None:
    seen, saved, progress = watched
    best, at = checkpoint.group(saved, "best"), progress["best_update"]
    assert at == _BEST < progress["update"]
    assert _distance(best, seen.validated[at]) == 0
    assert _distance(best, seen.average(progress["update"])) > 1e-2


def test_the_loss_of_the_best_is_that_of_its_weights(corpus: Path, run: Path) -> None:
    recipe = tiny_recipe(corpus)
    no_dropout = replace(recipe.model, input_dropout=0.0, recurrent_dropout=0.0, output_dropout=0.0)
    task, _ = KINDS["language"].task(replace(recipe, model=no_dropout), str(corpus), Place())
    facts = checkpoint.load(run / CHECKPOINT)[1]
    losses = {}
    for group in ("best", "model"):
        task.model.load_state_dict(checkpoint.group(tensors(run), group))
        losses[group] = task.validate()
    assert losses["best"] == pytest.approx(facts["progress"]["best_loss"], abs=1e-6)
    assert abs(losses["model"] - losses["best"]) > 1e-4


def test_the_last_weights_are_kept_where_they_are_wanted(corpus: Path, tmp_path: Path) -> None:
    recipe = _recipe(corpus, keep="last")
    with pytest.MonkeyPatch.context() as patch:
        Watched(patch)  # for which the best validation was long before
        carry_out(recipe, tmp_path / "run", "cpu", Path())
    saved = tensors(tmp_path / "run")
    progress = checkpoint.load(tmp_path / "run" / CHECKPOINT)[1]["progress"]
    assert progress["best_update"] == progress["update"] > _BEST
    assert progress["best_loss"] == 1.0 + progress["update"] - _BEST
    assert _distance(checkpoint.group(saved, "best"), checkpoint.group(saved, "average")) == 0


def test_what_is_kept_has_its_share_of_the_weights_the_run_began_from(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.run.require_start", lambda *_: None)
    monkeypatch.setattr("training.run.begin_from", lambda *_: {"name": "first"})
    recipe = _recipe(corpus, average_decay=_DECAY, keep="last", blend=0.25)
    with monkeypatch.context() as patch:
        seen = Watched(patch)
        carry_out(recipe, tmp_path / "run", "cpu", Path(), Path("first"))
    last, saved = len(seen.after) - 1, tensors(tmp_path / "run")
    wanted = {n: 0.75 * t + 0.25 * seen.after[0][n].double() for n, t in seen.average(last).items()}
    best = checkpoint.group(saved, "best")
    assert _distance(best, wanted) < 1e-5
    assert _distance(best, checkpoint.group(saved, "average")) > 1e-3
    assert _distance(best, seen.validated[last]) == 0

    update, left = Trainer._update, 15

    def interrupted(trainer: Trainer) -> Tensor:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return update(trainer)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            carry_out(recipe, tmp_path / "again", "cpu", Path(), Path("first"))
    carry_out(recipe, tmp_path / "again", "cpu", Path(), Path("first"))
    assert _distance(checkpoint.group(tensors(tmp_path / "again"), "best"), best) == 0


def test_what_begins_from_nothing_cannot_be_blended_with_it(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="say --from"):
        carry_out(tiny_recipe(corpus, blend=0.5), tmp_path / "run", "cpu", Path())
    with pytest.raises(ValueError, match="blend is 1"):
        tiny_recipe(corpus, blend=1.0)
