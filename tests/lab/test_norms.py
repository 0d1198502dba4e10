"""The twins: which weights are measured, in which mode, over how much of the text."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from lab import norms
from lab.__main__ import main
from lab.norms import (
    GROWTH_STEPS,
    LONGER,
    NORMS,
    RATES,
    SMALL_BATCH,
    Perturbation,
    Twin,
    contrast_twins,
    load_twin,
    loss,
    measure,
    perturb_fresh,
    perturb_trained,
)
from models.cells import CELLS
from models.language import LanguageConfig, LanguageModel
from training import checkpoint
from training.loop import CHECKPOINT
from training.recipe import read_recipe
from training.task import Diverged

_STEPS, _ROWS = 6, 4
_TEXT = torch.arange(300, dtype=torch.int64).remainder(251).to(torch.uint8)


def twin(norm: str) -> LanguageModel:
    """Running statistics and gains that differ from feature to feature."""
    torch.manual_seed(0)
    config = LanguageConfig(norm=norm, units=8, embedding=4, longest_step=_STEPS)
    model = LanguageModel(config)
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data += 0.2 * torch.rand_like(tensor)
    return model


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_a_twin_has_the_best_averaged_weights(tmp_path: Path, norm: str) -> None:
    best, last = twin(norm).state_dict(), LanguageModel(twin(norm).config).state_dict()
    tensors = checkpoint.prefixed(last, "model") | checkpoint.prefixed(best, "best")
    tensors |= checkpoint.prefixed({n: t + 1 for n, t in best.items()}, "average")
    facts = {"model": asdict(twin(norm).config)}
    checkpoint.save(tmp_path / CHECKPOINT, tensors, facts)
    loaded = load_twin(tmp_path).state_dict()
    assert loaded.keys() == best.keys()
    assert all(torch.equal(loaded[name], best[name]) for name in best)


def test_a_loss_is_of_whole_segments_from_the_zero_state() -> None:
    model = twin("layer").eval()
    per_row = len(_TEXT) // _ROWS
    nats = []
    for row in range(_ROWS):
        text = _TEXT[row * per_row : (row + 1) * per_row].long()
        for start in range(0, per_row - _STEPS + 1, _STEPS):
            state, byte = model.initial_state(1), torch.tensor([10])
            for target in text[start : start + _STEPS]:
                with torch.no_grad():
                    logits, state = model.step(byte, state)
                nats.append(F.cross_entropy(logits[0], target).item())
                byte = target[None]
    expected = sum(nats) / len(nats)
    assert loss(model, _TEXT, _ROWS, _STEPS, training=True) == pytest.approx(expected, abs=1e-5)


def test_only_under_batch_norm_are_training_and_serving_two_functions() -> None:
    layer = measure("layer", 0.5, twin("layer"), _TEXT, _ROWS * 2, _STEPS)
    assert layer.training == layer.served
    assert layer.training_longer == layer.served_longer
    batch = measure("batch", 0.5, twin("batch"), _TEXT, _ROWS * 2, _STEPS)
    assert abs(batch.training - batch.served) > 1e-4
    assert abs(batch.training - batch.training_small_batch) > 1e-4
    small = loss(twin("batch"), _TEXT, SMALL_BATCH, _STEPS, training=True)
    assert batch.training_small_batch == small
    longer = loss(twin("batch"), _TEXT, _ROWS * 2, LONGER * _STEPS, training=True)
    assert batch.training_longer == longer
    assert abs(batch.training_longer - batch.served_longer) > 1e-4


def test_without_a_norm_a_fresh_cell_forgets_a_perturbation() -> None:
    found = perturb_fresh("lstm", "none", units=16)
    assert 0 <= found.after_200 <= found.after_50 < 1e-13
    torch.manual_seed(5)
    assert perturb_fresh("lstm", "none", units=16) == found  # whatever was drawn before


def test_a_change_is_told_after_50_steps_and_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.norms._grow", lambda *_: list(range(1, 1 + GROWTH_STEPS)))
    found = perturb_fresh("rnn", "layer", units=2)
    assert (found.network, found.after_50, found.after_200) == ("fresh rnn", 50, 200)


@torch.no_grad()
def test_a_trained_twin_is_perturbed_as_it_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    change = 1e3  # or nothing would be left of it
    monkeypatch.setattr("lab.norms.PERTURBATION", change)
    model = twin("batch").train()
    served = twin("batch").double().eval()
    state = served.initial_state(1)
    moved = tuple(s + change if s.is_floating_point() else s for s in state)
    distances = []
    for byte in _TEXT[:GROWTH_STEPS].long():
        state, moved = (served.step(byte[None], s)[1] for s in (state, moved))
        distances.append((state[0] - moved[0]).abs().max().item())
    found = perturb_trained("batch", model, _TEXT)
    assert (found.after_50, found.after_200) == (distances[49], distances[199])
    assert found.after_50 > found.after_200
    assert model.training  # what is perturbed is a copy
    assert {p.dtype for p in model.parameters()} == {torch.float32}


_RUNS: dict[Any, Any] = {
    "layer": {0.1: None, 0.3: Path("b"), 1.0: Path("c")},
    "none": {0.1: Path("d"), 0.3: Path("e"), 1.0: None},
}
_COMPARED = read_recipe("contrast", ["batch.rows=32", "batch.steps=64"])
_TEXT_MEASURED = torch.zeros(100)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked to be measured of twins that are their names; nothing is computed."""
    asked: list[Any] = []

    def measured(norm: Any, rate: float, *given: Any) -> Twin:
        asked.append((norm, rate, *given))
        return Twin(norm, rate, 1.5, 2.0, 3.0, 4.0, 5.0)

    def served(model: str, text: torch.Tensor, *size: int, training: bool) -> float:
        assert (text is _TEXT_MEASURED, size, training) == (True, (32, 64), False)
        return {"b": 3.0, "c": 2.0, "d": 1.0, "e": 1.5}[model]

    def trained(norm: Any, model: str, text: torch.Tensor) -> Perturbation:
        assert (model, text is _TEXT_MEASURED) == ({"layer": "c", "none": "d"}[norm], True)
        return Perturbation("trained lstm", norm, 1e-3, 1e-7)

    def fresh(kind: Any, norm: Any) -> Perturbation:
        return Perturbation(f"fresh {kind}", norm, 1e-5, 1e-9)

    corpus = SimpleNamespace(split=lambda _: (torch.zeros(900), _TEXT_MEASURED))
    monkeypatch.setattr(norms, "read_corpus", lambda _: corpus)
    monkeypatch.setattr(norms, "load_twin", lambda run: run.name)
    monkeypatch.setattr(norms, "loss", served)
    monkeypatch.setattr(norms, "measure", measured)
    monkeypatch.setattr(norms, "perturb_trained", trained)
    monkeypatch.setattr(norms, "perturb_fresh", fresh)
    return asked


def test_a_norm_is_measured_at_the_rate_whose_loss_served_is_least(
    tmp_path: Path, asked: list[Any]
) -> None:
    """Of those at which it did not diverge."""
    contrast_twins(_RUNS, _COMPARED, tmp_path, "as typed")
    measured_on = _TEXT_MEASURED, 32, 64
    assert asked == [("layer", 1.0, "c", *measured_on), ("none", 0.1, "d", *measured_on)]
    assert json.loads((tmp_path / "contrast.json").read_text())["rates"] == {
        "layer": {"0.1": None, "0.3": 3.0, "1": 2.0},
        "none": {"0.1": 1.0, "0.3": 1.5, "1": None},
    }
    with pytest.raises(ValueError, match="none: it diverged at every rate"):
        contrast_twins(_RUNS | {"none": {0.1: None}}, _COMPARED, tmp_path, "as typed")


@pytest.mark.usefixtures("asked")
def test_twins_are_measured_on_the_validation_text_and_told_by_mode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contrast_twins(_RUNS, _COMPARED, tmp_path, "as typed")
    content = json.loads((tmp_path / "contrast.json").read_text())
    assert (content["command"], content["validation_bytes"]) == ("as typed", 100)
    assert content["machine"]["cores"] > 0
    networks = [(p["network"], p["norm"]) for p in content["perturbations"]]
    fresh = [(f"fresh {kind}", norm) for kind in CELLS for norm in ("layer", "none")]
    assert networks == [*fresh, ("trained lstm", "layer"), ("trained lstm", "none")]
    _, first, *_, last = capsys.readouterr().out.splitlines()
    losses = ["1.5000", "2.0000", "+5.0e-01", "3.0000", "4.0000", "5.0000"]
    assert first.split() == ["layer", "1", *losses]
    assert last.endswith("1e-14 becomes 1e-03 in 50 steps, 1e-07 in 200")


def test_each_twin_is_trained_with_its_own_norm_and_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that diverges, as at rates that are tried it may, does not keep the others from that."""
    trained: dict[Path, tuple[str, float]] = {}
    compared: list[Any] = []

    def carry_out(recipe: Any, run: Path, *_: object) -> None:
        trained[run] = recipe.model.norm, recipe.training.learning_rate
        if trained[run] == ("none", 1.0):
            raise Diverged("no number")

    monkeypatch.setattr("lab.__main__.carry_out", carry_out)
    monkeypatch.setattr("lab.norms.contrast_twins", lambda *given: compared.append(given[0]))
    assert main(["norms", "--out", str(tmp_path)]) == 0
    (runs,) = compared
    assert runs["none"].pop(1.0) is None
    assert capsys.readouterr().err == "runs/contrast-none-1: no number\n"
    assert trained.pop(Path("runs/contrast-none-1")) == ("none", 1.0)
    assert trained == {run: (norm, rate) for norm in runs for rate, run in runs[norm].items()}
    runs["none"][1.0] = None
    assert {norm: tuple(of_norm) for norm, of_norm in runs.items()} == dict.fromkeys(NORMS, RATES)
