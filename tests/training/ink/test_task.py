"""Ink as something to train on: rows, batches, splits, and a training that goes on where it was."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from contract.alphabets import LONGEST_TEXT, encode
from models.handwriting import HandwritingConfig, HandwritingModel
from tests.training.tiny import Interrupted, stop_after, tensors
from training.config import BatchConfig, DataConfig, Recipe, TrainConfig
from training.ink.corpus import PenBatch, PenCorpus, Rows, collate, join, read_pens, with_end
from training.ink.line import Tally
from training.ink.prepare import LONGEST_INK, Ink, prepare
from training.ink.synthetic import synthetic_lines
from training.ink.task import PenTask, point_losses
from training.loop import CHECKPOINT, LOG
from training.recipe import read_recipe
from training.run import carry_out

TINY = HandwritingConfig(units=16, mixtures=3, window=2, embedding=5)
_ROWS = 6


@pytest.fixture(scope="module")
def corpus() -> PenCorpus:
    """Synthetic lines, five to a writer, so that rows are put together."""
    tally = Tally()
    inks = prepare(synthetic_lines(150, 4), tally)
    assert len(inks) > 100
    return PenCorpus(
        "invented",
        [Ink(i.text, i.offsets, i.advance, f"w{n // 5}", i.source) for n, i in enumerate(inks)],
    )


def task(corpus: PenCorpus, seed: int = 0, rank: int = 0, world: int = 1) -> PenTask:
    torch.manual_seed(0)
    train, validation = corpus.split(0.2)
    model = HandwritingModel(TINY)
    return PenTask(model, train, validation[:20], _ROWS, seed, rank, world)


def ink(text: str, offsets: list[list[float]], writer: str = "w") -> Ink:
    made = np.array(offsets, np.float32)
    return Ink(text, made, float(made[:, 0].cumsum().max()), writer, "invented")


LEFT = ink("ab", [[1, 2, 0], [3, -1, 1], [-1, 2, 1]])
RIGHT = ink("c", [[0.5, 1, 0], [2, 0, 1]])


def test_joined_pieces_stand_on_one_baseline_a_gap_apart() -> None:
    both = join(LEFT, RIGHT, gap=2.5)
    assert both.text == "ab c"
    places = both.offsets[:, :2].cumsum(0)
    assert places[:3] == pytest.approx(LEFT.offsets[:, :2].cumsum(0))
    alone = RIGHT.offsets[:, :2].cumsum(0)
    assert places[3:] == pytest.approx(alone + np.array([LEFT.advance + 2.5, 0], np.float32))
    assert both.advance == LEFT.advance + 2.5 + RIGHT.advance
    assert both.offsets[:, 2].tolist() == [0, 1, 1, 0, 1]
    assert RIGHT.offsets[0].tolist() == [0.5, 1, 0]  # untouched


def test_the_last_move_is_to_where_a_next_word_would_begin() -> None:
    moves = with_end(LEFT, gap=4.0)
    assert moves[:-1].tolist() == LEFT.offsets.tolist()
    assert moves[:, :2].sum(0) == pytest.approx([LEFT.advance + 4.0, 0])
    assert moves[-1, 2] == 1
    following = join(LEFT, RIGHT, gap=4.0).offsets[3, :2] - RIGHT.offsets[0, :2]
    assert moves[-1, :2] == pytest.approx(following)


def test_a_batch_is_its_rows_padded(corpus: PenCorpus) -> None:
    inks = corpus.inks[:5]
    gaps = np.linspace(2.5, 5.5, 5)
    batch = collate(inks, gaps)
    for i, (one, gap) in enumerate(zip(inks, gaps, strict=True)):
        size = len(one.offsets) + 1
        assert batch.counts[:, i].tolist() == [1.0] * size + [0.0] * (len(batch.counts) - size)
        assert batch.points[:size, i].numpy().tobytes() == with_end(one, gap).tobytes()
        assert (batch.points[size:, i] == 0).all()
        assert batch.length[i] == len(one.text)
        symbols = encode(one.text)
        padding = [0] * (batch.symbols.shape[1] - len(symbols))
        assert batch.symbols[i].tolist() == [*symbols, *padding]
        assert padding  # the end of the longest text too


def test_padding_does_not_change_the_loss(corpus: PenCorpus) -> None:
    made = task(corpus)
    model = made.model.double()
    inks, gaps = corpus.inks[:4], np.full(4, 3.0)

    def widened(batch: PenBatch) -> PenBatch:
        return PenBatch(batch.points.double(), batch.symbols, batch.length, batch.counts.double())

    batch = widened(collate(inks, gaps))
    loss, _ = made.loss(batch, model.initial_state(4))
    nats, counts, _ = point_losses(model, batch, model.initial_state(4))
    assert (nats[counts == 0] == 0).all()
    alone = [
        point_losses(model, widened(collate([i], gaps[:1])), model.initial_state(1)) for i in inks
    ]
    total, count = sum(a[0].sum() for a in alone), sum(a[1].sum() for a in alone)
    assert abs((loss - total / count).item()) < 1e-12
    mean_of_means = sum(a[0].sum() / a[1].sum() for a in alone) / 4
    assert abs((loss - mean_of_means).item()) > 1e-6


def test_the_loss_of_a_point_does_not_see_that_point(corpus: PenCorpus) -> None:
    model = task(corpus).model.double()
    batch = collate(corpus.inks[:1], np.full(1, 3.0))
    points = batch.points.double().requires_grad_()
    seen = PenBatch(points, batch.symbols, batch.length, batch.counts)
    nats, _, _ = point_losses(model, seen, model.initial_state(1))
    (gradient,) = torch.autograd.grad(nats[7, 0], points)
    assert (gradient[:8, 0, :2].abs().sum(1) > 0).all()  # it is scored, and those before are read
    assert (gradient[8:] == 0).all()


def test_a_batch_is_a_function_of_the_update_alone(corpus: PenCorpus) -> None:
    forward, backward = task(corpus), task(corpus)
    updates = (0, 3, 7, 8, 21, 3)
    batches = {u: forward.batch(u)[0] for u in updates}
    for update in reversed(updates):
        again, fresh = backward.batch(update)
        assert fresh
        assert all(torch.equal(a, b) for a, b in zip(again, batches[update], strict=True))
    other = task(corpus, seed=1).batch(3)[0]
    assert other[0].shape != batches[3][0].shape or not torch.equal(other[0], batches[3][0])


def test_rows_of_a_batch_are_alike_in_length(corpus: PenCorpus) -> None:
    made = task(corpus)
    for pool in (0, 5):
        lengths = [PenBatch(*made.batch(8 * pool + i)[0]).counts.sum(0) for i in range(8)]
        ranges = sorted((float(row.min()), float(row.max())) for row in lengths)
        assert all(one[1] <= other[0] for one, other in pairwise(ranges))


def test_texts_start_short_and_grow(corpus: PenCorpus) -> None:
    made = task(corpus)
    first = [int(PenBatch(*made.batch(i)[0]).length.max()) for i in range(8)]
    late = 8 * made.updates_per_epoch
    last = [int(PenBatch(*made.batch(late + i)[0]).length.max()) for i in range(8)]
    assert np.median(first) < 20 < max(last)


def test_processes_share_the_rows_of_a_batch(corpus: PenCorpus) -> None:
    whole = PenBatch(*task(corpus).batch(2)[0])
    for rank in range(4):
        made = task(corpus, rank=rank, world=4)
        mine = PenBatch(*made.batch(2)[0])
        for ours, theirs in zip(mine[:1] + mine[3:], whole[:1] + whole[3:], strict=True):
            assert torch.equal(ours, theirs[:, rank::4])
        assert torch.equal(mine.symbols, whole.symbols[rank::4])
        assert torch.equal(mine.length, whole.length[rank::4])
        assert len(made.initial_state()[0]) == len(mine.length)


def test_a_row_is_words_of_one_writer_within_the_limits(corpus: PenCorpus) -> None:
    rows, generator = Rows(corpus.inks), np.random.default_rng(0)
    wanted = {n: rows.draw(n, generator) for n in (1, 8, 20, 40) for _ in range(30)}
    for row in wanted.values():
        mine = [ink.text for ink in corpus.inks if ink.writer == row.writer]
        left = row.text
        while left:
            word = max((t for t in mine if left == t or left.startswith(f"{t} ")), key=len)
            left = left[len(word) + 1 :]
        assert len(row.text) <= LONGEST_TEXT + 3
        assert len(row.offsets) <= LONGEST_INK
        assert row.offsets[-1, 2] == 1
    assert len(wanted[40].text) > len(wanted[8].text)


def test_a_writer_is_in_one_part_only(corpus: PenCorpus) -> None:
    train, validation = corpus.split(0.3)
    assert len(train) + len(validation) == len(corpus.inks)
    writers = [{ink.writer for ink in part} for part in (train, validation)]
    assert not writers[0] & writers[1]
    assert all(writers)
    assert 0.1 < len(validation) / len(corpus.inks) < 0.5
    more = PenCorpus("more", [*corpus.inks[::-1], LEFT]).split(0.3)
    assert {ink.writer for ink in more[1]} - {"w"} == writers[1]


def test_a_saved_corpus_is_the_same(corpus: PenCorpus, tmp_path: Path) -> None:
    corpus.save(tmp_path / "pens.npz")
    loaded = read_pens(tmp_path / "pens.npz", Tally())
    assert loaded.sha256 == corpus.sha256
    assert loaded.name == corpus.name
    for ours, theirs in zip(loaded.inks, corpus.inks, strict=True):
        assert (ours.text, ours.writer, ours.source, ours.advance) == (
            theirs.text,
            theirs.writer,
            theirs.source,
            theirs.advance,
        )
        assert ours.offsets.dtype == np.float32
        assert ours.offsets.tobytes() == theirs.offsets.tobytes()
    changed = [*corpus.inks[:-1], LEFT]
    assert PenCorpus(corpus.name, changed).sha256 != corpus.sha256


def test_without_ink_on_both_sides_there_is_no_task(corpus: PenCorpus) -> None:
    model = HandwritingModel(TINY)
    for train, validation, what in (([], corpus.inks, "training"), ([LEFT], [], "validation")):
        with pytest.raises(ValueError, match=f"no lines of ink are left for {what}"):
            PenTask(model, train, validation, 4, 0)


def recipe(source: Path) -> Recipe:
    return Recipe(
        kind="handwriting",
        data=DataConfig(source=str(source), validation_fraction=0.2),
        model=TINY,
        batch=BatchConfig(rows=_ROWS),
        training=TrainConfig(
            epochs=1.5, warmup_updates=5, learning_rate=1e-2, average_decay=0.8, seed=1
        ),
    )


@pytest.fixture(scope="module")
def source(corpus: PenCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pens") / "few.npz"
    PenCorpus("few", corpus.inks[:60]).save(path)
    return path


@pytest.fixture(scope="module")
def run(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pen-run") / "pen"
    carry_out(recipe(source), folder, "cpu", Path())
    return folder


def test_training_learns(source: Path, run: Path) -> None:
    made = task(read_pens(source, Tally()))
    untrained = made.validate()
    (*_, last) = [json.loads(line) for line in (run / LOG).read_text().splitlines()]
    assert last["validation_loss"] < untrained - 0.3


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(
    source: Path, run: Path, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 9)  # in the second pool of rows
        with pytest.raises(Interrupted):
            carry_out(recipe(source), tmp_path / "pen", "cpu", Path())
    carry_out(recipe(source), tmp_path / "pen", "cpu", Path())
    first, second = tensors(run), tensors(tmp_path / "pen")
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert (run / CHECKPOINT).exists()


def test_a_recipe_says_its_kind() -> None:
    shipped = read_recipe("handwriting", ["model.units=12", "model.window=0"])
    assert isinstance(shipped.model, HandwritingConfig)
    assert (shipped.model.units, shipped.model.window) == (12, 0)
    with pytest.raises(ValueError, match=r"\[model\]: unknown key output_dropout"):
        read_recipe("handwriting", ["model.output_dropout=0.1"])
    with pytest.raises(ValueError, match=r"model\.norm is 'batch'"):
        read_recipe("handwriting", ["model.norm=batch"])


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('kind = "music"\n[data]\nsource = "x"\n')
    with pytest.raises(ValueError, match=r"r\.toml: kind is 'music'; .*language, handwriting"):
        read_recipe(str(tmp_path / "r.toml"))
