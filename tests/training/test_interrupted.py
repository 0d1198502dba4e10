"""What a training that is interrupted at an odd moment keeps."""

import json
from pathlib import Path

import pytest
from torch import Tensor

from tests.training.tiny import tiny_recipe, write_corpus
from training import checkpoint
from training.loop import CHECKPOINT, LOG, Trainer
from training.run import carry_out


def test_the_best_weights_and_their_loss_are_of_the_same_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the weights of the second validation are copied."""
    whole, copies = Trainer._averaged_model, list[int]()

    def copied(trainer: Trainer) -> dict[str, Tensor]:
        copies.append(trainer.progress.update)
        if len(copies) == 3:  # after those it began with, and those of the first validation
            raise KeyboardInterrupt
        return whole(trainer)

    monkeypatch.setattr(Trainer, "_averaged_model", copied)
    recipe, run = tiny_recipe(write_corpus(tmp_path)), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        carry_out(recipe, run, "cpu", Path())
    (first,) = map(json.loads, (run / LOG).read_text().splitlines())
    progress = checkpoint.load(run / CHECKPOINT)[1]["progress"]
    assert progress["best_update"] == first["update"] == copies[1] < copies[2]
    assert progress["best_loss"] == first["validation_loss"]
