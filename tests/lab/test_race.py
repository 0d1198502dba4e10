"""The race of two pens: who reaches whose best, read from training logs."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab import race as module
from lab.__main__ import main
from lab.measured import proof
from lab.race import race, read_curve
from training.config import Recipe
from training.recipe import read_recipe


def _log(folder: Path, losses: list[float]) -> Path:
    folder.mkdir()
    rows = [{"update": 10 * (i + 1), "validation_loss": loss} for i, loss in enumerate(losses)]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_curve_is_the_validation_of_every_row(tmp_path: Path) -> None:
    run = _log(tmp_path / "run", [3.0, 2.0])
    assert read_curve(run / "log.jsonl") == [(10, 3.0), (20, 2.0)]


def test_losses_that_are_no_numbers_are_of_no_curve(tmp_path: Path) -> None:
    run = _log(tmp_path / "run", [float("nan"), 2.0, float("inf")])
    assert read_curve(run / "log.jsonl") == [(20, 2.0)]
    lost = _log(tmp_path / "lost", [float("nan")])
    with pytest.raises(ValueError, match="no validation loss that is a number"):
        read_curve(lost / "log.jsonl")


def test_a_race_is_of_the_data_it_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[str] = []

    def carry_out(recipe: Recipe, run: Path, *_: object) -> None:
        trained.append(recipe.data.source)
        _log(run, [2.0, 1.0])

    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    monkeypatch.setattr("lab.__main__.carry_out", carry_out)
    assert main(["race", "--data", "synthetic", "--out", "out"]) == 0
    found = json.loads(Path("out", "pen-contrast.json").read_text("utf-8"))
    assert trained == ["synthetic"] * 2
    assert found["recipe"]["data"]["source"] == "synthetic"
    assert found["command"] == "python -m lab race --data synthetic --out out"


def test_the_ratio_is_of_updates_to_the_baselines_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {
        "layer": _log(tmp_path / "layer", [3.0, 1.5, 1.2, 1.3]),
        "none": _log(tmp_path / "none", [4.0, 3.0, 2.0, 1.6, 1.6]),
    }
    out = tmp_path / "new" / "out"
    race(runs, read_recipe("pen-contrast"), out, "c")  # type: ignore[arg-type]
    found = json.loads((out / "pen-contrast.json").read_text())
    assert (found["baseline_best"], found["baseline_updates"]) == (1.6, 40)
    assert (found["layer_updates"], found["ratio"]) == (20, 0.5)
    told = capsys.readouterr().out
    assert "none: best 1.6000 nats/point after 40 updates" in told
    assert "layer: there after 20 updates, best 1.2000" in told
    assert "ratio 0.50: goal 0.6 met" in told
    assert "it takes **0.5** times the updates" in " ".join(proof.race(found).split())
    assert (out / "pen-contrast.png").stat().st_size > 1000


@pytest.mark.parametrize(("needed", "verdict"), [(60, "met"), (61, "MISSED")])
def test_a_goal_is_met_by_the_ratio_that_it_is_and_by_no_more(
    needed: int, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    drawn: list[Any] = []
    updates = {"layer": needed, "none": 100}
    monkeypatch.setattr(module, "read_curve", lambda log: [(updates[log.parent.name], 1.5)])
    monkeypatch.setattr(module, "plot_race", lambda *given: drawn.append(given))
    recipe = read_recipe("pen-contrast", ["batch.rows=7"])
    race({"layer": Path("layer"), "none": Path("none")}, recipe, tmp_path, "c")
    assert f"goal 0.6 {verdict}" in capsys.readouterr().out
    assert json.loads((tmp_path / "pen-contrast.json").read_text())["ratio"] == needed / 100
    ((curves, best, image, title),) = drawn
    assert (curves["layer"], best) == ([(needed, 1.5)], 1.5)
    assert image == tmp_path / "pen-contrast.png"
    assert "batch 7:" in title


def test_a_race_that_is_not_won_has_no_ratio_and_misses_its_goal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {
        "layer": _log(tmp_path / "layer", [3.0, 2.5]),
        "none": _log(tmp_path / "none", [2.0, 1.6]),
    }
    race(runs, read_recipe("pen-contrast"), tmp_path / "out", "c")  # type: ignore[arg-type]
    found = json.loads((tmp_path / "out" / "pen-contrast.json").read_text())
    assert found["ratio"] is None
    assert "it never gets to the other's best" in " ".join(proof.race(found).split())
    assert "goal 0.6 MISSED" in capsys.readouterr().out
