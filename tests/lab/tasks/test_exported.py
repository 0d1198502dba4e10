"""The report on an export, by its parts: what is compared with what, and what a manifest tells."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from contract.manifest import GOLDEN, MANIFEST
from lab import export
from lab.experiment import Part
from models.mlp import MLP, MLPConfig
from models.norms import fold
from tests.lab.tasks.toy import Line
from training.config import DataConfig, Recipe

_RECIPE = Recipe(kind="any", data=DataConfig(source="any"), model=None)


def _part(name: str = "model") -> Part:
    def trained(model: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"mode": torch.full((2,), float(model.training), dtype=inputs["x"].dtype)}

    return Part(name=name, step=cast("Any", None), trained=trained, inputs={"x": torch.ones(2, 3)})


def test_the_truth_is_that_of_training_mode_in_the_precision_that_is_asked_for() -> None:
    model = nn.Linear(1, 1).eval()
    for real in (torch.float32, torch.float64):
        found = export.trained(_part(), model, real)
        assert found["mode"].tolist() == [1, 1]
        assert found["mode"].dtype == str(real).removeprefix("torch.")
    assert not model.training  # a copy is


def test_rounding_is_the_root_mean_square_over_all_outputs() -> None:
    served = {"a": np.array([3.0, 4.0]), "b": np.zeros(2)}
    truth = {"a": np.zeros(2), "b": np.zeros(2)}
    assert export._rms(served, truth) == math.sqrt(25 / 4)


@pytest.mark.parametrize(("off", "holds"), [(0.0, True), (1e-7, False)])
def test_beside_training_without_any_rounding_what_is_exported_may_have_none(
    off: float, holds: bool
) -> None:
    """As of a network whose units are all dead, which gives its bias."""
    graph: Any = SimpleNamespace(alone=lambda _: {"mode": np.full(2, 1 + off)})
    found = export.rounding(_part(), nn.Linear(1, 1), {"mode": np.ones(2)}, graph)
    assert found.holds is holds, found


def test_the_structure_is_as_wrong_as_its_worst_output(monkeypatch: pytest.MonkeyPatch) -> None:
    served = {"good": np.zeros(2), "bad": np.array([0.0, -0.5])}
    graph = SimpleNamespace(alone=lambda _: served)
    monkeypatch.setattr(export, "PartGraph", lambda *_: graph)
    truth = {"good": np.zeros(2), "bad": np.zeros(2)}
    found = export.structure(_part(), nn.Linear(1, 1), truth, Path("wide"))
    assert (found.value, found.holds) == (0.5, False)


def test_bytes_that_depend_on_the_rows_beside_them_are_counted_in_every_batch() -> None:
    """Of 20 rows, in batches of a few and of all; each row gives its own number, and in a batch of
    this size one more."""
    asked: list[int] = []
    wrong = 0

    def rows(_: Any, some: list[int]) -> dict[str, Any]:
        asked.append(len(some))
        return {"y": np.array(some, np.uint8) + np.uint8(len(some) == wrong)}

    graph: Any = SimpleNamespace(
        part=_part(),
        alone=lambda _: {"y": np.arange(20, dtype=np.uint8)},
        batch=lambda _: 20,
        taken=lambda outputs, some: {"y": outputs["y"][some]},
        rows=rows,
    )
    for wrong in (0, 7, 20):
        found = export.bits(graph)
        assert (found.value, found.holds) == (wrong, not wrong)
    assert asked == [2, 3, 7, 16, 20] * 3
    assert "48 rows in batches of up to 20" in found.detail


def test_golden_vectors_are_of_every_part() -> None:
    names = export.golden([_part(), _part("other")], nn.Linear(1, 1))
    assert names.keys() == {f"{part}/{what}" for part in ("model", "other")
                            for what in ("inputs/x", "float32/mode", "float64/mode")}  # fmt: skip


def test_what_is_exported_is_folded_and_its_numbers_are_counted(tmp_path: Path) -> None:
    """A matrix under weight norm is one matrix in what is served."""
    torch.manual_seed(0)
    task: Any = SimpleNamespace(model=MLP(MLPConfig(units=4, norm="weight")))
    assert export.export(Line(), task, _RECIPE, tmp_path / "made") == []
    manifest = json.loads((tmp_path / "made" / MANIFEST).read_text("utf-8"))
    assert GOLDEN in manifest["files"]
    numbers = sum(p.numel() for p in fold(task.model).parameters())
    assert manifest["parameters"] == numbers < sum(p.numel() for p in task.model.parameters())
