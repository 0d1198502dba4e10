"""Calibrated models: their logits are divided by the temperature at which what was held out is
likeliest, once, and nothing else about them is changed."""

import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from export.convert import provenance, read_source
from models.language import LanguageConfig, LanguageModel
from models.quantized import integers
from tests.service.altered import edit_manifest
from tests.training.tiny import TEXT, Interrupted, tensors, tiny_recipe, undrawn
from training import checkpoint
from training.config import Recipe, TrainConfig
from training.loop import CHECKPOINT, Trainer
from training.recipe import read_recipe
from training.run import carry_out
from training.text.task import LanguageTask
from training.weights import Weights

pytestmark = pytest.mark.usefixtures("_undrawn")


def _recipe(corpus: Path) -> Recipe:
    return tiny_recipe(corpus, epochs=0.5, calibrated=True)


def _facts(run: Path) -> dict[str, Any]:
    return checkpoint.load(run / CHECKPOINT)[1]


def _task(config: LanguageConfig) -> LanguageTask:
    tokens = torch.frombuffer(bytearray(TEXT.encode()), dtype=torch.uint8)
    cut = round(len(tokens) * 0.9)
    return LanguageTask(LanguageModel(config), tokens[:cut], tokens[cut:], 8, 20, 0)


@pytest.fixture(scope="module")
def runs(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run and the same one calibrated."""
    folder = tmp_path_factory.mktemp("runs")
    recipe = _recipe(corpus)
    plain = replace(recipe, training=replace(recipe.training, calibrated=False))
    with undrawn():
        carry_out(plain, folder / "plain", "cpu", Path())
        carry_out(recipe, folder / "calibrated", "cpu", Path())
    return folder / "plain", folder / "calibrated"


def test_logits_are_divided_and_nothing_else_is_changed(runs: tuple[Path, Path]) -> None:
    plain, calibrated = (tensors(run) for run in runs)
    temperature = _facts(runs[1])["progress"]["temperature"]
    assert abs(temperature - 1) > 0.02
    for name, tensor in plain.items():
        if name.startswith("best.readout."):
            torch.testing.assert_close(calibrated[name] * temperature, tensor)
        else:
            assert torch.equal(calibrated[name], tensor), name


def test_what_was_held_out_is_likeliest_as_it_is(runs: tuple[Path, Path]) -> None:
    losses = [_facts(run)["progress"]["best_loss"] for run in runs]
    assert losses[1] < losses[0]
    task = _task(_recipe(Path()).model)
    best = checkpoint.group(tensors(runs[1]), "best")
    for factor in (1.0, 0.98, 1.02):
        scaled = {n: t * factor if n.startswith("readout.") else t for n, t in best.items()}
        task.model.load_state_dict(scaled)
        if factor == 1:
            assert task.validate() == pytest.approx(losses[1], abs=1e-6)
        else:
            assert task.validate() > losses[1]
    assert task.model.training


@pytest.mark.parametrize("sureness", [0.1, 10.0])
def test_a_temperature_far_from_1_is_found(runs: tuple[Path, Path], sureness: float) -> None:
    best = checkpoint.group(tensors(runs[1]), "best")
    task = _task(_recipe(Path()).model)
    task.model.load_state_dict(
        {n: t * sureness if n.startswith("readout.") else t for n, t in best.items()}
    )
    assert task.calibrate() == pytest.approx(sureness, rel=1e-3)


@pytest.mark.parametrize(("certain_of", "temperature"), [(ord("a"), 1.0), (ord("b"), 256.0)])
def test_a_model_without_a_doubt_is_left_so_where_it_is_right_and_else_made_to_doubt(
    certain_of: int, temperature: float
) -> None:
    """As one of a high rate is; 256 is as far as it goes."""
    task = _task(LanguageConfig(units=4, embedding=2))
    task.validation_tokens = torch.full((200,), ord("a"), dtype=torch.uint8)
    with torch.no_grad():
        task.model.readout.bias[certain_of] = 1e6
    before = task.validate()
    assert task.calibrate() == temperature
    assert task.validate() * temperature == pytest.approx(before)


def test_it_is_done_once_and_told(
    corpus: Path, runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = shutil.copytree(runs[1], tmp_path / "again")
    carry_out(_recipe(corpus), again, "cpu", Path())
    first, second = tensors(runs[1]), tensors(again)
    assert all(torch.equal(first[name], tensor) for name, tensor in second.items())
    assert _facts(again) == _facts(runs[1])
    temperature = _facts(again)["progress"]["temperature"]
    assert capsys.readouterr().out.startswith(f"logits divided by {temperature:.4f}\n")


def test_a_run_that_is_interrupted_before_it_is_calibrated_later(
    corpus: Path, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    def stop(task: LanguageTask) -> float:
        task.model.readout.weight.data.zero_()
        raise Interrupted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageTask, "calibrate", stop)
        with pytest.raises(Interrupted):
            carry_out(_recipe(corpus), tmp_path / "cut", "cpu", Path())
    carry_out(_recipe(corpus), tmp_path / "cut", "cpu", Path())
    first, second = tensors(runs[1]), tensors(tmp_path / "cut")
    assert all(torch.equal(first[name], tensor) for name, tensor in second.items())


def test_a_run_that_is_interrupted_as_it_keeps_what_is_calibrated_is_not_calibrated_twice(
    corpus: Path, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    calibrate, calibrated = LanguageTask.calibrate, list[float]()

    def kept(weights: Weights, name: str, value: Any) -> None:
        object.__setattr__(weights, name, value)
        if name == "best" and calibrated:
            signal.raise_signal(signal.SIGINT)

    def note(task: LanguageTask) -> float:
        calibrated.append(calibrate(task))
        return calibrated[0]

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LanguageTask, "calibrate", note)
            patch.setattr(Weights, "__setattr__", kept)
            with pytest.raises(KeyboardInterrupt):
                carry_out(_recipe(corpus), tmp_path / "cut", "cpu", Path())
    finally:
        signal.signal(signal.SIGINT, usual)
    carry_out(_recipe(corpus), tmp_path / "cut", "cpu", Path())
    assert _facts(tmp_path / "cut")["progress"]["temperature"] == calibrated[0]
    first, second = tensors(runs[1]), tensors(tmp_path / "cut")
    assert all(torch.equal(first[name], tensor) for name, tensor in second.items())


def test_running_statistics_are_kept_beside_what_is_calibrated(tmp_path: Path) -> None:
    task = _task(LanguageConfig(units=4, embedding=2, norm="batch", longest_step=2))
    task.validation_tokens = task.validation_tokens[:40]
    trainer = Trainer(task, TrainConfig(calibrated=True), tmp_path, {})
    kept = trainer.weights.best
    trainer._calibrate()
    assert trainer.weights.best.keys() == kept.keys() >= trainer.weights.buffers.keys() > set()


def test_matrices_of_eight_bits_keep_their_integers() -> None:
    torch.manual_seed(0)
    task = _task(LanguageConfig(units=24, embedding=8, precision="int8"))
    whole, unit = integers(task.model.readout.parametrizations.weight.original)
    temperature = task.calibrate()
    after, smaller = integers(task.model.readout.parametrizations.weight.original)
    assert torch.equal(after, whole)
    torch.testing.assert_close(smaller * temperature, unit)


@pytest.mark.parametrize("kind", ["handwriting", "reader"])
def test_a_model_without_logits_is_refused_before_its_data_is_read(
    kind: str, tmp_path: Path
) -> None:
    recipe = read_recipe(kind, ["training.calibrated=true", "data.source=nowhere"])
    with pytest.raises(ValueError, match=rf"training\.calibrated .* of kind {kind} has none"):
        carry_out(recipe, tmp_path, "cpu", Path())


def test_an_artifact_tells_its_temperature(
    runs: tuple[Path, Path], artifacts: Path, tmp_path: Path
) -> None:
    facts = _facts(runs[1])
    assert provenance(facts)["temperature"] == facts["progress"]["temperature"]
    assert "temperature" not in provenance(_facts(runs[0]))
    again = shutil.copytree(artifacts / "letters", tmp_path / "again")
    edit_manifest(again, lambda manifest: manifest["provenance"].update(temperature=1.5))
    assert provenance(read_source(again)[1])["temperature"] == 1.5
