"""A language task: what is trained on, what is validated on, and that the two never meet."""

import hashlib
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from contract.alphabets import START_TOKEN
from models.language import LanguageConfig, LanguageModel
from training.config import BatchConfig, DataConfig, Place, Recipe, TrainConfig
from training.kinds import KINDS
from training.text.data import Corpus
from training.text.task import LanguageTask

_FRACTION = 0.1
# The first nine tenths are bytes under 100, the rest bytes from 200 on.
_CONTENT = bytes(i % 100 for i in range(4500)) + bytes(200 + i % 50 for i in range(500))


@pytest.mark.parametrize("world", [1, 2])
def test_no_byte_of_the_validation_part_is_ever_trained_on(tmp_path: Path, world: int) -> None:
    (tmp_path / "text").write_bytes(_CONTENT)
    recipe = Recipe(
        kind="language",
        data=DataConfig(source="text", validation_fraction=_FRACTION),
        model=LanguageConfig(units=4, embedding=2),
        batch=BatchConfig(rows=3, steps=10),
    )
    for rank in range(world):
        place = Place(rank=rank, world=world)
        task, facts = KINDS["language"].task(recipe, str(tmp_path / "text"), place)
        assert isinstance(task, LanguageTask)
        assert facts["bytes"] == len(_CONTENT)
        for update in range(4 * task.updates_per_epoch):
            (inputs, targets), _ = task.batch(update)
            assert max(inputs.max(), targets.max()) < 100
        assert bytes(task.validation_tokens) == _CONTENT[4500:]


def test_a_task_and_its_facts_are_those_of_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(_CONTENT)
    recipe = Recipe(
        kind="language",
        data=DataConfig(source="text", validation_fraction=0.25),
        model=LanguageConfig(units=4, embedding=2),
        batch=BatchConfig(rows=4, steps=10),
        training=TrainConfig(seed=7),
    )
    place = Place(rank=1, world=2)
    task, facts = KINDS["language"].task(recipe, str(tmp_path / "text"), place)
    assert isinstance(task, LanguageTask)
    assert (task.batch_size, task.steps, task.seed, task.rank, task.world) == (4, 10, 7, 1, 2)
    assert bytes(task.validation_tokens) == _CONTENT[3750:]
    digest = hashlib.sha256(_CONTENT).hexdigest()
    assert facts == {"name": "text", "sha256": digest, "bytes": len(_CONTENT)}


@pytest.mark.parametrize("length", [33, 34, 40, 43, 62, 63])
def test_of_a_text_of_hardly_a_segment_a_row_every_epoch_has_whole_ones(length: int) -> None:
    """However far into the text its rows begin."""
    tokens = torch.arange(length, dtype=torch.uint8)
    task = LanguageTask(
        LanguageModel(LanguageConfig(units=4, embedding=2)), tokens, tokens, 3, 10, 0
    )
    assert task.updates_per_epoch >= 1
    for update in range(8 * task.updates_per_epoch):
        (inputs, targets), _ = task.batch(update)
        assert inputs.shape == targets.shape == (10, 3)


@pytest.mark.parametrize("path", ["input_dropout", "recurrent_dropout", "output_dropout"])
def test_what_is_served_drops_nothing(path: str) -> None:
    trained = LanguageConfig(units=4, embedding=2, **{path: 0.5})  # type: ignore[arg-type]
    served = KINDS["language"].model(asdict(trained))
    assert served.config == LanguageConfig(units=4, embedding=2)


def test_a_split_is_the_text_once_its_end_to_validate() -> None:
    for fraction in (0.04, 0.1, 1 / 3, 0.999):
        train, validation = Corpus("text", _CONTENT).split(fraction)
        assert bytes(train) + bytes(validation) == _CONTENT
        assert len(validation) == pytest.approx(fraction * len(_CONTENT), abs=1)


@pytest.mark.parametrize(("steps", "width"), [(40, 6), (10, 16)])
def test_the_validation_loss_is_of_every_byte_that_fills_a_stream_given_those_before(
    steps: int, width: int
) -> None:
    torch.manual_seed(0)
    model = LanguageModel(LanguageConfig(units=6, embedding=4, output_dropout=0.5))
    train, validation = Corpus("text", _CONTENT).split(_FRACTION)
    task = LanguageTask(model, train, validation, 3, steps, seed=0)
    per_row = len(validation) // width
    nats = []
    model.eval()
    for row in validation[: width * per_row].view(width, per_row).long():
        inputs = torch.cat([torch.tensor([START_TOKEN]), row[:-1]])
        with torch.no_grad():
            logits, _ = model(inputs[:, None], model.initial_state(1))
        nats.append(F.cross_entropy(logits[:, 0], row).item())
    model.train()
    assert task.validate() == pytest.approx(sum(nats) / width, abs=1e-5)
    assert model.training


def test_a_validation_that_is_no_number_ends_the_training() -> None:
    model = LanguageModel(LanguageConfig(units=6, embedding=4))
    task = LanguageTask(model, *Corpus("text", _CONTENT).split(_FRACTION), 3, 40, seed=0)
    with torch.no_grad():
        model.readout.bias[0] = torch.nan
    with pytest.raises(ValueError, match="lower the learning rate, or the dropout"):
        task.validate()
