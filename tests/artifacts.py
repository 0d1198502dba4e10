"""Small artifacts made without any data: a model that learned a few lines, and one that did not.

`letters` is a layer of LSTM that writes words, accents, currency signs and emoji. `noise` is two
layers of GRU that write any byte, so most of its text is not UTF-8.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from export.convert import write_artifact
from export.tasks import LanguageTask
from models.language import LanguageConfig, LanguageModel

LETTERS = LanguageConfig(units=48, embedding=8)
NOISE = LanguageConfig(cell="gru", layers=2, units=24, embedding=8)

_TEXT = """Zoë paid €5 for a café crème. «Très bon!» said the owl 🦉 to the naïve fox 🦊.
It rained; the river rose; nobody minded. ñandú, œuvre, straße: 12€ or 7€?
"""
_UPDATES = 250
_GOLDEN = {"rows": 4, "steps": 50}


def write_letters(folder: Path) -> Path:
    """The artifact `letters` in `folder`, always with the same weights on the same machine."""
    torch.manual_seed(1)
    model = LanguageModel(LETTERS)
    tokens = torch.frombuffer(bytearray(_TEXT.encode() * 40), dtype=torch.uint8)
    task = LanguageTask(model, tokens, tokens[:600], batch_size=16, steps=32, seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    state = task.initial_state()
    for update in range(_UPDATES):
        batch, _ = task.batch(update)
        loss, state = task.loss(batch, state)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        state = tuple(s.detach() for s in state)
    return _write(folder, "letters", model)


def write_noise(folder: Path) -> Path:
    """The artifact `noise` in `folder`."""
    torch.manual_seed(2)
    model = LanguageModel(NOISE)
    with torch.no_grad():
        for parameter in model.parameters():  # no two tensors equal, as after training
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return _write(folder, "noise", model)


def _write(folder: Path, name: str, model: LanguageModel) -> Path:
    facts: dict[str, Any] = {
        "model": asdict(model.config),
        "batch": _GOLDEN,
        "data": {"name": "made for the tests"},
        "training": {},
        "progress": {"best_update": _UPDATES, "best_loss": 1.0, "elapsed_s": 1.0},
    }
    path = folder / name
    path.mkdir()
    write_artifact(path, name, model, facts)
    return path
