"""What pens and readers are trained on alike: rows drawn in pools, shared out, and gone on with."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import distributed

from tests.training.pens import (
    Make,
    judged_by_short_rows,
    pen_recipe,
    pen_task,
    reader_recipe,
    reader_task,
)
from tests.training.tiny import Interrupted, stop_after, tensors, undrawn
from training.config import Place, Recipe
from training.ink import rows
from training.ink.corpus import PenBatch, PenCorpus, read_pens
from training.ink.line import Tally
from training.kinds import KINDS
from training.loop import LOG
from training.reader.rows import ReadBatch
from training.run import carry_out
from training.task import Batch

_BOTH = pytest.mark.parametrize("make", [pen_task, reader_task])


@_BOTH
def test_a_batch_is_a_function_of_the_update_alone(pens: PenCorpus, make: Make) -> None:
    forward, backward = make(pens), make(pens)
    updates = (0, 3, 7, 8, 21)
    batches = {u: forward.batch(u)[0] for u in updates}
    for update in reversed(updates):  # each of them begins in another pool
        again, fresh = backward.batch(update)
        assert fresh
        assert all(torch.equal(a, b) for a, b in zip(again, batches[update], strict=True))
    other = make(pens, seed=1).batch(3)[0]
    assert other[0].shape != batches[3][0].shape or not torch.equal(other[0], batches[3][0])


@_BOTH
def test_an_epoch_of_a_line_is_an_update(pens: PenCorpus, make: Make) -> None:
    made = make(pens)
    one = replace(made, train_inks=made.train_inks[:1])
    assert one.updates_per_epoch == 1
    assert one.batch(0)[1]


@pytest.mark.parametrize(
    ("make", "updates", "characters"),
    [(pen_task, 30, lambda b: PenBatch(*b).length),
     (reader_task, 40, lambda b: ReadBatch(*b).counts)],
)  # fmt: skip
def test_texts_start_short_and_grow(
    pens: PenCorpus, make: Make, updates: int, characters: Callable[[Batch], torch.Tensor]
) -> None:
    """An epoch has as many updates as rows of half the last length take."""
    made = make(pens)
    assert made.updates_per_epoch == updates
    late = 8 * made.updates_per_epoch
    first, last = (
        torch.cat([characters(made.batch(start + i)[0]) for i in range(8)]) for start in (0, late)
    )
    assert first.median() < 10
    assert last.median() > 20
    whole = replace(made, growing=False)
    assert torch.cat([characters(whole.batch(i)[0]) for i in range(8)]).median() > 15
    assert all(map(torch.equal, whole.batch(late)[0], made.batch(late)[0]))  # to the same length


@_BOTH
def test_no_rows_are_drawn_a_second_time(pens: PenCorpus, make: Make) -> None:
    made = make(pens)
    late = 8 * made.updates_per_epoch  # texts grow no more
    one, other = ([made.batch(start + i)[0][0] for i in range(8)] for start in (late, late + 8))
    assert not any(torch.equal(a, b) for a in one for b in other)


@_BOTH
def test_no_two_batches_are_varied_alike(pens: PenCorpus, make: Make) -> None:
    drawn = list[float]()
    for seed in (0, 1):
        made = make(pens, seed=seed)
        made.collated = lambda _, generator: drawn.append(generator.random())  # type: ignore[assignment]
        for pool in (0, 1):
            made._draw_pool(pool)
    assert len(set(drawn)) == 2 * 2 * 8


@_BOTH
def test_batches_of_short_and_of_long_rows_come_in_any_order(pens: PenCorpus, make: Make) -> None:
    made = make(pens)
    steps = [len(made.batch(update)[0][0]) for update in range(8)]
    assert sorted(steps) != steps


@_BOTH
def test_the_rows_of_a_seed_are_not_those_of_another_later_on(pens: PenCorpus, make: Make) -> None:
    first, second = (replace(make(pens, seed=seed), growing=False) for seed in (0, 1))
    later, now = first.batch(8)[0][0], second.batch(0)[0][0]
    assert later.shape != now.shape or not torch.equal(later, now)


@_BOTH
def test_what_is_learned_from_is_varied_and_what_is_judged_is_not(
    pens: PenCorpus, make: Make
) -> None:
    made = make(pens)
    plain, again = (made.collated(pens.inks[:4], None)[0] for _ in range(2))
    one, other = (made.collated(pens.inks[:4], np.random.default_rng(n))[0] for n in (1, 2))
    assert torch.equal(plain, again)
    assert not torch.equal(one, plain)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("make", "rows_first"),
    [(pen_task, {"symbols", "length"}), (reader_task, {"lengths", "symbols", "counts"})],
)
def test_processes_share_the_rows_of_a_batch(
    pens: PenCorpus, make: Make, rows_first: set[str]
) -> None:
    kind = PenBatch if make is pen_task else ReadBatch
    whole = make(pens).batch(5)[0]
    for rank in range(4):
        made = make(pens, rank=rank, world=4)
        mine = made.batch(5)[0]
        for name, ours, theirs in zip(kind._fields, mine, whole, strict=True):
            part = theirs[rank::4] if name in rows_first else theirs[:, rank::4]
            assert torch.equal(ours, part), name
        assert len(made.initial_state()[0]) == len(range(rank, 6, 4))


@_BOTH
def test_the_losses_of_processes_are_on_average_that_of_the_whole_batch(
    pens: PenCorpus, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although their rows differ in length."""
    alone = make(pens)
    whole, _ = alone.batch(5)
    expected, _ = alone.loss(whole, alone.initial_state())
    counted = whole[-1].sum()
    monkeypatch.setattr(distributed, "all_reduce", lambda count: count.copy_(counted))
    made = [make(pens, rank=rank, world=2) for rank in (0, 1)]
    losses = [task.loss(task.batch(5)[0], task.initial_state())[0].item() for task in made]
    assert np.mean(losses) == pytest.approx(expected.item(), rel=1e-5)


@_BOTH
@judged_by_short_rows()
def test_validation_is_the_mean_over_all_rows_however_they_are_put_in_batches(
    pens: PenCorpus, make: Make
) -> None:
    made = make(pens)
    total = count = 0.0
    for batch in made._validation:
        nats, _ = made.losses(batch, made.model.initial_state(batch[-1].shape[-1]))
        total, count = total + nats.double().sum().item(), count + batch[-1].sum().item()
    dropped = list[bool]()
    made.model.register_forward_pre_hook(lambda model, _: dropped.append(model.training))  # type: ignore[attr-defined]
    assert made.validate() == pytest.approx(total / count)
    assert made.units_per_sequence * 256 == pytest.approx(count)
    assert (any(dropped), len(dropped)) == (False, len(made._validation))
    assert made.model.training


@_BOTH
def test_every_seed_is_validated_on_the_same_rows(pens: PenCorpus, make: Make) -> None:
    one, other = (make(pens, seed=seed)._validation for seed in (0, 1))
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        assert all(map(torch.equal, mine, theirs))


@_BOTH
def test_rows_are_of_one_character_up_to_the_longest_of_their_epoch(
    pens: PenCorpus, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, wanted = make(pens), list[np.ndarray]()
    monkeypatch.setattr(rows, "_drawn", lambda _, of, *__: wanted.append(of) or [])
    late = round(made.growth.epochs * made.updates_per_epoch)  # in updates, of which a pool has 8
    for pools, longest in (
        (range(1), made.growth.first),
        (range(late, late + 9), made.growth.last),
    ):
        wanted.clear()
        for pool in pools:
            made._draw_pool(pool)
        drawn = np.concatenate(wanted)
        assert (drawn.min(), drawn.max()) == (1, longest)
    made.rows_of(made.validation_inks)
    assert wanted[-1].tolist() == [20] * 256  # those that are judged


@_BOTH
@judged_by_short_rows()
def test_a_validation_that_is_no_number_ends_the_training(pens: PenCorpus, make: Make) -> None:
    made = make(pens)
    with torch.no_grad():
        made.model.readout.bias[0] = torch.nan
    with pytest.raises(ValueError, match="lower the learning rate"):
        made.validate()


@_BOTH
def test_without_ink_on_both_sides_there_is_no_task(pens: PenCorpus, make: Make) -> None:
    kind, model = type(make(pens)), make(pens).model
    few = pens.inks[:1]
    boxed = [replace(ink, isolated=True) for ink in few]
    for train, validation, what in (
        ([], pens.inks, "training"),
        (few, [], "validation"),
        (few, boxed, "validation"),
    ):
        with pytest.raises(ValueError, match=f"no lines of ink are left for {what}"):
            kind(model, train, validation, 4, 0)


@pytest.mark.parametrize("make_recipe", [pen_recipe, reader_recipe])
def test_a_task_has_the_rows_of_its_recipe_that_are_for_its_process(
    saved_pens: Path, make_recipe: Callable[[Path], Recipe], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = make_recipe(saved_pens)
    recipe = replace(
        recipe,
        data=replace(recipe.data, validation_fraction=0.4, own=0.5),
        training=replace(recipe.training, seed=7),
    )
    place = Place(rank=1, world=2)
    task, facts = KINDS[recipe.kind].task(recipe, str(saved_pens), place)
    assert isinstance(task, rows.RowTask)
    assert (task.batch_size, task.seed, task.rank, task.world) == (recipe.batch.rows, 7, 1, 2)
    corpus = read_pens(saved_pens, Tally())
    held_out = [ink.text for ink in corpus.split(0.4)[1]]
    assert [ink.text for ink in task.validation_inks] == held_out
    amounts = {
        "points": sum(len(ink.offsets) for ink in corpus.inks),
        "characters": sum(len(ink.text) for ink in corpus.inks),
    }  # of all there is
    counted = f"{KINDS[recipe.kind].unit}s"
    told = {name: facts[name] for name in amounts.keys() & facts}
    assert told == {counted: amounts[counted]}
    assert capsys.readouterr().out == ""  # which the first process tells


@pytest.fixture(scope="module", params=[(pen_recipe, pen_task), (reader_recipe, reader_task)])
def trained(
    request: pytest.FixtureRequest, saved_pens: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Recipe, Make, Path]:
    """A finished run, its recipe, and what makes its task."""
    make_recipe, make = request.param
    folder, recipe = tmp_path_factory.mktemp("trained") / "run", make_recipe(saved_pens)
    # Into the second pool of rows and no further: the rows of a pen grow, and what they take.
    recipe = replace(recipe, training=replace(recipe.training, epochs=0.85))
    with undrawn(), judged_by_short_rows():
        carry_out(recipe, folder, "cpu", Path())
    return recipe, make, folder


@judged_by_short_rows()
def test_training_learns(trained: tuple[Recipe, Make, Path], saved_pens: Path) -> None:
    _, make, run = trained
    untrained = make(read_pens(saved_pens, Tally())).validate()
    (*_, last) = [json.loads(line) for line in (run / LOG).read_text().splitlines()]
    assert last["validation_loss"] < untrained - 0.3


@undrawn()
@judged_by_short_rows()
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(
    trained: tuple[Recipe, Make, Path], tmp_path: Path
) -> None:
    recipe, _, run = trained
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 9)  # in the second pool of rows
        with pytest.raises(Interrupted):
            carry_out(recipe, tmp_path / "cut", "cpu", Path())
    carry_out(recipe, tmp_path / "cut", "cpu", Path())
    whole, again = tensors(run), tensors(tmp_path / "cut")
    assert whole.keys() == again.keys()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
