"""Updates as CUDA graphs: the same numbers as kernel by kernel. What needs a GPU is run by
`make gpu-check`."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from models.cells import State
from models.handwriting import HandwritingConfig, HandwritingModel
from models.language import LanguageConfig, LanguageModel
from training.capture import Captures, _AtOnce, _Captured, gradients_of
from training.config import TrainConfig
from training.group import Group
from training.ink.line import Tally
from training.ink.prepare import Ink, prepare
from training.ink.synthetic import synthetic_lines
from training.ink.task import PenTask
from training.loop import Trainer
from training.reader.task import ReaderTask
from training.task import Batch, Task
from training.text.task import LanguageTask

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
_TEXT = torch.arange(4000) * 7919 % 256


def _text(device: str = "cpu", **changes: object) -> LanguageTask:
    torch.manual_seed(0)
    model = LanguageModel(LanguageConfig(units=24, layers=2, **changes)).to(device)  # type: ignore[arg-type]
    return LanguageTask(model, _TEXT, _TEXT[:200], batch_size=4, steps=10, seed=0)


@cache  # to invent and prepare them takes longer than any test
def _inks() -> list[Ink]:
    return prepare(synthetic_lines(60, 3), Tally())


def _pen(device: str = "cpu") -> PenTask:
    torch.manual_seed(0)
    inks = _inks()
    model = HandwritingModel(HandwritingConfig(units=16, mixtures=3, window=2, embedding=4))
    return PenTask(model.to(device), inks[:50], inks[50:], 4, seed=0, growing=False)


_TASKS: dict[str, Callable[[str], Captures]] = {"text": _text, "pen": _pen}


@pytest.mark.parametrize("kind", _TASKS)
def test_padding_leaves_the_loss_and_the_gradients(kind: str) -> None:
    task = _TASKS[kind]("cpu")
    batch, _ = task.batch(0)
    found = [
        _gradients(_AtOnce(task, list(task.model.parameters())), given, task)
        for given in (batch, task.padded(batch))
    ]
    for plain, padded in zip(*found, strict=True):
        torch.testing.assert_close(padded, plain, rtol=1e-5, atol=1e-7)


def test_an_update_leaves_no_graph_behind() -> None:
    """Its memory would be kept until the next validation."""
    task = _text()
    way = gradients_of(task, task.model.parameters(), alone=True)
    loss, state = way(task.batch(0)[0], task.initial_state())
    assert not [tensor for tensor in (loss, *state) if tensor.requires_grad]


def test_rows_of_ink_come_in_few_lengths() -> None:
    task = _pen()
    shapes = {tuple(t.shape for t in task.padded(task.batch(n)[0])) for n in range(24)}
    plain = {tuple(t.shape for t in task.batch(n)[0]) for n in range(24)}
    assert len(shapes) <= 10 < len(plain)


def _gradients(way: Callable[..., tuple[Tensor, State]], batch: Batch, task: Task) -> list[Tensor]:
    loss, _ = way(batch, task.initial_state())
    return [loss, *(p.grad.clone() for p in task.model.parameters() if p.grad is not None)]


@pytest.mark.parametrize("kind", _TASKS)
def test_a_cpu_captures_nothing(kind: str) -> None:
    task = _TASKS[kind]("cpu")
    assert isinstance(task, Captures)
    assert isinstance(gradients_of(task, task.model.parameters(), alone=True), _AtOnce)


class _OneOfTwo(Group):
    """Another trains along, and stands where this one does."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.size = 2

    def agrees(self, number: int) -> bool:
        return True


@pytest.mark.parametrize(("group", "alone"), [(Group, True), (_OneOfTwo, False)])
def test_updates_are_captured_where_nobody_trains_along(
    group: type[Group], alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("training.loop.Group", group)
    monkeypatch.setattr("training.loop.gradients_of", lambda *of: asked.append(of[-1]))
    Trainer(_text(), TrainConfig(), tmp_path, {})
    assert asked == [alone]


def test_some_tasks_cannot_be_captured() -> None:
    assert _text().capturable
    assert not _text(norm="batch", longest_step=5).capturable
    assert not hasattr(ReaderTask, "capturable")


@on_gpu
@pytest.mark.parametrize("kind", _TASKS)
def test_a_graph_computes_what_its_kernels_do(kind: str) -> None:
    """Updates of several shapes, each twice, the state carried where there is one to carry."""
    found = []
    for alone in (False, True):
        task = _TASKS[kind]("cuda")
        parameters = list(task.model.parameters())
        way = gradients_of(task, parameters, alone)
        assert isinstance(way, _Captured if alone else _AtOnce)
        optimizer = torch.optim.SGD(parameters, 0.1)
        state, losses = task.initial_state(), []
        for update in [*range(12), *range(12)]:
            batch, anew = task.batch(update)
            loss, state = way(batch, task.initial_state() if anew else state)
            optimizer.step()
            losses.append(loss)
        found.append((torch.stack(losses), *(p.detach() for p in parameters)))
    for launched, captured in zip(*found, strict=True):
        torch.testing.assert_close(captured, launched, rtol=1e-3, atol=1e-5)


@on_gpu
def test_a_graph_drops_other_units_with_every_seed() -> None:
    task = _text("cuda", output_dropout=0.5)
    task.model.train()
    way = gradients_of(task, task.model.parameters(), alone=True)
    batch, _ = task.batch(0)
    losses = []
    for seed in (1, 2, 1, 2):
        torch.manual_seed(seed)
        losses.append(way(batch, task.initial_state())[0].item())
    assert losses[:2] == losses[2:]
    assert losses[0] != losses[1]
    assert np.isfinite(losses).all()
