"""Pictures: a planted defect turns the report red."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from lab.compare import Laboratory
from lab.export import compare
from lab.graphs import PartGraph


def test_training_that_sees_pictures_upside_down_turns_the_report_red(
    laboratory: Callable[[str, str], Laboratory], tmp_path: Path
) -> None:
    found = laboratory("pictures", "layer")
    task = found.trained("layer", 0)
    (part,) = found.experiment.parts(task)

    def upside_down(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> object:
        return part.trained(model, {"picture": inputs["picture"].flip(1)})

    wrong = replace(part, trained=upside_down)  # type: ignore[arg-type]
    report = compare(PartGraph(wrong, task.model, tmp_path), task.model)
    assert [finding.name for finding in report if not finding.holds] == [
        "model, structure",
        "model, rounding",
    ]
