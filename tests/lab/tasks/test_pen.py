"""The pen as a task: who is in which part of the data, its figures, and a planted defect."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from contract.alphabets import END, WINDOW_SYMBOLS
from lab import experiment
from lab.compare import Laboratory
from lab.experiment import LabTask
from lab.export import compare
from lab.graphs import PartGraph
from lab.plan import read_plans
from lab.tasks.pen.data import Pens, halves, read
from tests.training.pens import judged_by_short_rows
from training.ink.corpus import PenBatch, PenCorpus
from training.ink.prepare import Ink
from training.ink.task import point_losses


def _ink(writer: str) -> Ink:
    return Ink("a", np.zeros((2, 3), np.float32), 1.0, writer, "s")


def test_no_writer_is_in_both_halves() -> None:
    inks = [_ink(writer) for writer in "bacabcddca"]
    first, second = halves(inks)
    assert sorted(i.writer for i in (*first, *second)) == sorted("bacabcddca")
    assert {i.writer for i in first} == {"a", "b"}
    assert {i.writer for i in second} == {"c", "d"}
    # Who has the middle line is of the second half, however many theirs are.
    assert [len(part) for part in halves([_ink(writer) for writer in "abbbc"])] == [1, 4]


@pytest.fixture(scope="module")
def pens() -> Pens:
    return read(None, 0.04)


def test_most_writers_of_a_corpus_are_learned_from_and_no_writer_is_in_two_parts(
    pens: Pens, tmp_path: Path
) -> None:
    inks = enumerate(pens.corpus.inks)
    mine = [replace(ink, writer=f"w{number % 20:02}") for number, ink in inks]
    PenCorpus("some", mine).save(tmp_path / "pens.npz")
    some = read(tmp_path / "pens.npz", 0.2)
    writers = [{ink.writer for ink in part} for part in (some.train, some.validation, some.test)]
    assert sum(map(len, writers)) == len(set.union(*writers)) == 20
    assert len(writers[0]) > 10
    assert all(writers)
    facts = experiment.load("pen").facts(some)
    assert facts["points"] == sum(len(ink.offsets) for ink in mine)
    told = [facts[part] for part in ("train", "validation", "test")]
    assert told == [len(some.train), len(some.validation), len(some.test)]


def test_the_stand_in_has_lines_for_each_part_and_is_the_same_every_time(pens: Pens) -> None:
    again = read(None, 0.04)
    assert pens.corpus.sha256 == again.corpus.sha256
    texts = [{ink.text for ink in part} for part in (pens.train, pens.validation, pens.test)]
    assert all(texts)
    assert sum(map(len, texts)) == len(set.union(*texts))


def _task(pens: Pens, seed: int) -> LabTask:
    one = experiment.load("pen")
    return one.task(read_plans(one, quick=True)[0].full("layer", 1e-2, seed), pens)


@judged_by_short_rows()
def test_nats_are_the_mean_over_the_points_of_all_rows(pens: Pens) -> None:
    few = replace(pens, validation=pens.validation[:9], test=pens.test[:3])
    task = _task(few, 0)
    total = points = 0.0
    for tensors in task._validation:  # type: ignore[attr-defined]
        batch = PenBatch(*tensors)
        state = task.model.initial_state(batch.points.shape[1])
        nats, _ = point_losses(task.model.eval(), batch, state)
        total, points = total + nats.sum().item(), points + batch.counts.sum().item()
    assert task.validate() == pytest.approx(total / points)
    assert task.figures == {"nats": pytest.approx(total / points)}
    held_out = task.measure(task.rows_of(few.test))  # type: ignore[attr-defined]
    assert task.test() == {"nats": held_out} != task.figures


@torch.no_grad()
def test_what_is_exported_tells_a_point_from_those_before_it(pens: Pens) -> None:
    """Its texts end as those of the service do."""
    task = _task(pens, 0)
    (part,) = experiment.load("pen").parts(task)
    text, length = part.inputs["text"], part.inputs["length"]
    assert text.shape[1] == WINDOW_SYMBOLS
    behind = torch.arange(WINDOW_SYMBOLS) >= length.unsqueeze(1)
    assert (text[behind] == END).all()
    points = part.inputs["forced"][:4]
    later = torch.cat([points[:2], points[2:] + 1])
    model = task.model.eval()
    before, after = (part.trained(model, part.inputs | {"forced": p})["mixture"]
                     for p in (points, later))  # fmt: skip
    assert torch.equal(before[:3], after[:3])
    assert not torch.equal(before[3], after[3])


def test_rows_are_drawn_by_the_seed_of_the_run(pens: Pens) -> None:
    first, other, again = (_task(pens, seed).batch(0)[0][0] for seed in (0, 1, 1))
    assert torch.equal(other, again)
    assert not torch.equal(first, other)


def test_training_that_sees_the_point_it_is_to_tell_turns_the_report_red(
    laboratory: Callable[[str, str], Laboratory], tmp_path: Path
) -> None:
    found = laboratory("pen", "layer")
    task = found.trained("layer", 0)
    (part,) = found.experiment.parts(task)
    part = replace(part, inputs={n: t[:20] if n in {"forced", "force", "uniform", "normal"} else t
                                 for n, t in part.inputs.items()})  # fmt: skip
    early = replace(
        part, trained=lambda m, i: part.trained(m, i | {"forced": i["forced"].roll(-1, 0)})
    )
    report = compare(PartGraph(early, task.model, tmp_path), task.model)
    assert "model, structure" in {f.name for f in report if not f.holds}
