"""Small artifacts made without any data: a model that learned a few lines, and some that did not.

`letters` is a layer of LSTM that writes words, accents, currency signs and emoji. `noise` is two
layers of GRU that write any byte, so most of its text is not UTF-8. `scrawl` is two layers of LSTM
that move a pen about, read their text once from left to right, and then end; two invented hands
are stored with it. `squint` is a reader of random weights, which makes something of any ink. `twin`
is a layer of LSTM under batch norm, which is made only where it is asked for.
"""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from export.artifact import read_artifact
from export.convert import convert, write_artifact
from export.ink.styles import StyleChoice, add_styles
from export.kinds import KINDS
from models.handwriting import HandwritingConfig, HandwritingModel
from models.language import LanguageConfig, LanguageModel
from models.reader import ReaderConfig, ReaderModel
from tests.training.pens import invented
from tests.training.tiny import write_corpus, write_run
from training.ink.corpus import PenCorpus
from training.ink.prepare import Ink
from training.text.task import LanguageTask

LETTERS = LanguageConfig(units=48, embedding=8)
NOISE = LanguageConfig(cell="gru", layers=2, units=24, embedding=8)
TWIN = LanguageConfig(norm="batch", units=8, embedding=4, longest_step=6)
SCRAWL = HandwritingConfig(units=48, mixtures=4, window=3, embedding=8)
SQUINT = ReaderConfig(units=64)
HANDS = ("upright", "hasty")
_PACE = 0.2

_TEXT = """Zoë paid €5 for a café crème. «Très bon!» said the owl 🦉 to the naïve fox 🦊.
It rained; the river rose; nobody minded. ñandú, œuvre, straße: 12€ or 7€?
"""
_UPDATES = 250
_GOLDEN = {"rows": 4, "steps": 50}
_KINDS: dict[type[nn.Module], str] = {
    LanguageModel: "language",
    HandwritingModel: "handwriting",
    ReaderModel: "reader",
}


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
    return write_model(folder, "letters", model)


def write_noise(folder: Path) -> Path:
    """The artifact `noise` in `folder`."""
    torch.manual_seed(2)
    model = LanguageModel(NOISE)
    with torch.no_grad():
        for parameter in model.parameters():  # no two tensors equal, as after training
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return write_model(folder, "noise", model)


def write_scrawl(folder: Path) -> Path:
    """The artifact `scrawl` in `folder`, whose window moves on by about `_PACE` of a character a
    step."""
    torch.manual_seed(3)
    model = HandwritingModel(SCRAWL)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
        model.window.parameters_of.bias[-SCRAWL.window :] = math.log(_PACE)
        model.readout.bias[0] = -1.5  # strokes of some points
        # Some moves go to the right of all ink, as to a next word, or no text would ever be over.
        model.readout.bias[1 + SCRAWL.mixtures : 3 + SCRAWL.mixtures] = 2.8
    path = write_model(folder, "scrawl", model)
    choices = [StyleChoice(id=hand, description=f"invented, {hand}", writer=hand) for hand in HANDS]
    add_styles(
        path,
        PenCorpus("invented", [invented_ink(hand, i) for i, hand in enumerate(HANDS)]),
        choices,
    )
    return path


def write_squint(folder: Path) -> Path:
    """The artifact `squint` in `folder`, which reads a letter every few pieces."""
    torch.manual_seed(6)
    model = ReaderModel(SQUINT)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
            if ".norm_" in name:
                parameter.mul_(0.5)  # random and any wilder, its rounding may be any size
        for part in model.readout.parts:
            part.mul_(3)  # sure enough to change its mind
    return write_model(folder, "squint", model)


def write_twin(folder: Path) -> Path:
    """The artifact `twin` in `folder`, under batch norm: its state counts the steps."""
    torch.manual_seed(7)
    return write_model(folder, "twin", LanguageModel(TWIN))


def write_trained(folder: Path) -> Path:
    """The folder `trained`: a text in `data`, and in `run` what it was learned in."""
    path = folder / "trained"
    (path / "data").mkdir(parents=True)
    write_run(write_corpus(path / "data"), path / "run")
    return path


def write_tiny(folder: Path, run: Path) -> Path:
    """The artifact `tiny` in `folder`, made of a run as a user makes it."""
    path = folder / "tiny"
    convert(run, path)
    return path


def write_pens(folder: Path) -> Path:
    """The folder `pens` with lines to learn from, which take seconds to invent and prepare."""
    path = folder / "pens"
    path.mkdir()
    invented().save(path / "invented.npz")
    return path


def _in_eight_bits(folder: Path, artifact: Path) -> Path:
    """The artifact in eight bits, folded if it can be, as those that are shipped; it says that it
    was trained on from the artifact."""
    path = folder / f"{artifact.name}-int8"
    fold = KINDS[read_artifact(artifact).kind].variants
    convert(artifact, path, quantize=True, fold=fold)
    manifest = read_artifact(path)
    source = {"name": artifact.name, "digest": "0" * 64}
    history = {name: told for name, told in manifest.provenance.items() if name != "rounded"}
    manifest.model_copy(update={"provenance": history | {"from": source}}).write(path)
    return path


write_letters_int8 = write_scrawl_int8 = _in_eight_bits  # by the names that they are asked for by


def invented_ink(writer: str, seed: int) -> Ink:
    """Offsets at random, which go to the right on the whole, at the pace of the window."""
    text = f"a line of ink in the {writer} hand"
    random = np.random.default_rng(seed)
    offsets = random.normal((0.5, 0), 1 + seed, (5 * len(text), 2)).astype(np.float32)
    up = (np.arange(len(offsets)) % 7 == 6)[:, None].astype(np.float32)
    advance = float(offsets[:, 0].cumsum().max())
    return Ink(text, np.concatenate([offsets, up], axis=1), advance, writer, "invented")


def write_model(folder: Path, name: str, model: nn.Module) -> Path:
    """The artifact of this name in `folder`."""
    facts: dict[str, Any] = {
        "kind": _KINDS[type(model)],
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
