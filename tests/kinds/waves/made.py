"""The artifact `sines`, made without training."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from export.convert import write_artifact
from tests.kinds.waves.model import WaveConfig, WaveModel


def write_sines(folder: Path) -> Path:
    """In `folder`, of random weights; the kind must be registered."""
    torch.manual_seed(4)
    model = WaveModel(WaveConfig())
    with torch.no_grad():
        for parameter in model.parameters():  # no two tensors equal, as after training
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    facts: dict[str, Any] = {
        "kind": "waves",
        "model": asdict(model.config),
        "batch": {"rows": 4, "steps": 30},
        "data": {"name": "made for the tests"},
        "training": {},
        "progress": {"best_update": 1, "best_loss": 1.0, "elapsed_s": 1.0},
    }
    path = folder / "sines"
    path.mkdir()
    write_artifact(path, path.name, model, facts)
    return path
