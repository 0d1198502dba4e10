"""Reading as something to train on: rows, their loss, and that it can be learned."""

from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contract.alphabets import encode
from contract.pieces import RESTS, Pieces, cut, line_of
from contract.reader import BLANK, best_path
from contract.strokes import UNITS_OF_SIZE, size_of
from models.reader import ReaderConfig, make_reader
from tests.training.pens import reader_task
from training import checkpoint
from training.config import TrainConfig
from training.ink.corpus import PenCorpus
from training.ink.prepare import Ink
from training.ink.synthetic import random_style, write
from training.kinds import KINDS
from training.loop import CHECKPOINT, Trainer
from training.reader.kind import learned_reordered
from training.reader.rows import ReadBatch, collate, pieces_of, strokes_of
from training.reader.task import row_losses
from training.recipe import read_recipe


def test_a_stroke_ends_with_the_point_after_which_the_pen_is_lifted() -> None:
    moves = np.array([[1, 2, 0], [0, 6, 1], [3, 0, 1], [1, -6, 0], [12, 0, 0]], np.float32)
    strokes = strokes_of(Ink("!-", moves, 17.0, "w", "invented"))
    assert [stroke.tolist() for stroke in strokes] == [
        [[1, 2], [1, 8]], [[4, 8]], [[5, 2], [17, 2]],
    ]  # fmt: skip


def test_a_row_is_cut_as_the_strokes_of_a_caller_are(pens: PenCorpus) -> None:
    """But for what levelling a line again, and its baseline again, may do to it."""
    level = [ink for ink in pens.inks if len(ink.text) > 6][:20]
    close = 0
    for ink in level:
        line = line_of([stroke * 7.0 + (90.0, -40.0) for stroke in strokes_of(ink)])
        assert line is not None
        mine, theirs = pieces_of(ink), cut(line)
        # How high it lies is judged by each line's own arcs.
        same = len(mine) == len(theirs)
        close += same and np.abs(mine[1:, 2:-2] - theirs[1:, 2:-2]).mean() < 0.15
    assert close >= 15


def test_a_hand_is_varied_and_its_strokes_are_not_lost(pens: PenCorpus) -> None:
    ink = pens.inks[0]
    plain = pieces_of(ink)
    varied = [pieces_of(ink, np.random.default_rng(seed)) for seed in (1, 2)]
    assert plain.tolist() == pieces_of(ink).tolist()
    assert not np.array_equal(varied[0], varied[1])
    lifts = [int(pieces[:, -1].sum()) for pieces in (plain, *varied)]
    assert lifts == [len(strokes_of(ink))] * 3


def test_a_hand_leans_both_ways_and_is_wide_or_narrow_for_its_size() -> None:
    bars = np.array([[0, 0, 0], [0, 6, 1], [1, -6, 0], [12, 0, 1]], np.float32)
    leans, widths, sizes, heights = [], [], [], []
    for seed in range(60):
        pieces = pieces_of(Ink("+", bars, 13.0, "w", "invented"), np.random.default_rng(seed))
        ends = np.flatnonzero(pieces[:, -1])
        moves = pieces[:, 2:-2].reshape(len(pieces), -1, 2).sum(1).cumsum(0)
        up, along = moves[ends[0]], moves[ends[1]] - moves[ends[0]]
        leans.append(up[0] / up[1])
        widths.append(along[0] / up[1] / 2)
        sizes.append(up[1])
        heights.append(pieces[0, 1])  # where it begins, from the baseline
    assert np.mean(leans) == pytest.approx(0, abs=0.06)
    assert np.std(leans) == pytest.approx(0.15, abs=0.05)
    assert np.std(np.log(widths)) == pytest.approx(0.12, abs=0.04)
    assert np.std(np.log(sizes)) == pytest.approx(0.18, abs=0.05)
    assert np.std(heights) == pytest.approx(0.5, abs=0.15)


class _Told:
    """A generator of what it is told, and of no tremor."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def normal(self, mean: float, deviation: float, shape: Any = None) -> Any:
        return self.numbers.pop(0) if shape is None else np.zeros(shape)


class _Shaken(_Told):
    """The same, of a tremor that is always the same."""

    def normal(self, mean: float, deviation: float, shape: Any = None) -> Any:
        still = super().normal(mean, deviation, shape)
        if shape is None:
            return still
        return still + deviation * np.random.default_rng(1).standard_normal(shape)


def test_every_point_of_a_hand_trembles_by_some_hundredths_of_a_unit(
    pens: PenCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.reader.rows.cut", lambda strokes, **_: np.concatenate(strokes))
    ink = max(pens.inks, key=lambda ink: len(ink.offsets))
    still, shaken = (pieces_of(ink, made(0, 0, 0, 0)) for made in (_Told, _Shaken))  # type: ignore[arg-type]
    scale = UNITS_OF_SIZE / size_of(np.concatenate(strokes_of(ink)))
    moved = (shaken - still) / scale
    assert moved.std(axis=0) == pytest.approx([0.06, 0.06], rel=0.15)


def test_a_hand_is_varied_about_the_size_of_its_row(
    pens: PenCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.reader.rows._TREMOR", 0.0)
    row = pens.inks[0]
    large = replace(row, offsets=row.offsets * np.array([2, 2, 1], np.float32))
    one, two = (pieces_of(ink, np.random.default_rng(1)) for ink in (row, large))
    assert two == pytest.approx(one, abs=1e-3)


def test_how_high_a_row_lies_is_in_units_whatever_its_size_and_its_lean(pens: PenCorpus) -> None:
    low, high = (pieces_of(pens.inks[0], _Told(0.7, 0.1, 0.3, y)) for y in (0.0, 1.25))  # type: ignore[arg-type]
    raised = low.copy()
    raised[0, 1] += 1.25
    raised[:, -2] += 1.25
    np.testing.assert_allclose(high, raised, atol=1e-5)


@pytest.mark.parametrize("tremor", [0.0, 1e-15])
def test_a_row_that_is_a_dash_has_the_size_of_its_width(tremor: float) -> None:
    """Also where levelling has left it not quite flat."""
    dash = Ink("-", np.array([[0, 0, 0], [12, tremor, 1]], np.float32), 12.0, "w", "invented")
    pieces = pieces_of(dash)
    assert pieces[:, 2:-2].sum() == pytest.approx(UNITS_OF_SIZE)


def test_a_batch_is_its_rows_with_a_rest_before_and_some_after(pens: PenCorpus) -> None:
    inks = pens.inks[:4]
    rows = [pieces_of(ink) for ink in inks]
    batch = collate(rows, [ink.text for ink in inks])
    for i, (row, ink) in enumerate(zip(rows, inks, strict=True)):
        assert batch.lengths[i] == 1 + len(row) + RESTS
        assert not batch.pieces[0, i].any()
        assert batch.pieces[1 : 1 + len(row), i].numpy().tobytes() == row.tobytes()
        assert not batch.pieces[1 + len(row) :, i].any()
        assert batch.symbols[i, : batch.counts[i]].tolist() == encode(ink.text)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_as_many_rows_as_asked_have_their_delayed_strokes_where_they_stand(
    pens: PenCorpus, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """And those to validate on all of them, if any."""
    task, ink, asked = replace(reader_task(pens), reordered=share), pens.inks[0], []

    def noted(ink: Ink, generator: Any, *, reordered: bool) -> Pieces:
        asked.append(reordered)
        return pieces_of(ink, generator, reordered=reordered)

    monkeypatch.setattr("training.reader.task.pieces_of", noted)
    task.collated([ink] * 200, np.random.default_rng(3))
    assert np.mean(asked) == pytest.approx(share, abs=0.15 * (share == 0.5))
    asked.clear()
    task.collated([ink] * 20, None)
    assert asked == [share > 0] * 20


def test_a_row_whose_delayed_strokes_stand_where_they_belong_is_cut_so(pens: PenCorpus) -> None:
    moved = 0
    for ink in pens.inks:
        pieces = pieces_of(ink, reordered=True)
        points = ink.offsets[:, :2].cumsum(0, dtype=np.float64)
        scale = UNITS_OF_SIZE / np.abs(points[:, 1] - np.median(points[:, 1])).mean()
        own = cut([stroke * scale for stroke in strokes_of(ink)], reordered=True)
        assert pieces == pytest.approx(own, abs=1e-4)
        moved += not np.array_equal(pieces, pieces_of(ink))
    assert moved > 5


def test_the_loss_is_that_of_all_the_ways_to_say_the_text() -> None:
    """An oracle: every path of four steps over three symbols, collapsed and summed."""
    torch.manual_seed(3)
    model = make_reader(ReaderConfig(units=5)).double()
    text = encode("!!")
    pieces = torch.randn(4, 1, 12).double()
    batch = ReadBatch(pieces, torch.tensor([4]), torch.tensor([text]), torch.tensor([2]))
    nats, _ = row_losses(model, batch, model.initial_state(1))
    logits, _ = model(pieces, batch.lengths, model.initial_state(1))
    sure = logits[:, 0].softmax(-1).detach().numpy()
    total = 0.0
    for path in product([BLANK, text[0]], repeat=4):
        collapsed = [s for s, before in zip(path, (BLANK, *path), strict=False) if s != before]
        if [s for s in collapsed if s != BLANK] == text:
            total += float(np.prod([sure[t, s] for t, s in enumerate(path)]))
    assert nats[0].item() == pytest.approx(-np.log(total))


def test_padding_does_not_change_the_loss(pens: PenCorpus) -> None:
    model = reader_task(pens).model.double()
    inks = sorted(pens.inks[:4], key=lambda ink: len(ink.offsets))

    def nats(some: list[Ink]) -> torch.Tensor:
        batch = collate([pieces_of(ink) for ink in some], [ink.text for ink in some])
        batch = batch._replace(pieces=batch.pieces.double())
        return row_losses(model, batch, model.initial_state(len(some)))[0]

    assert [nats([ink])[0].item() for ink in inks] == pytest.approx(nats(inks).tolist())


def test_a_row_too_short_for_its_text_is_not_learned_from() -> None:
    model = make_reader(ReaderConfig(units=5))
    pieces = torch.randn(3, 2, 12)
    symbols = torch.tensor([encode("wide"), [*encode("w"), 0, 0, 0]])
    batch = ReadBatch(pieces, torch.tensor([3, 3]), symbols, torch.tensor([4, 1]))
    nats, _ = row_losses(model, batch, model.initial_state(2))
    assert nats[0] == 0
    assert nats[1] > 0
    nats.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_a_run_whose_read_out_was_whole_is_told_to_go_on_from_what_it_is_converted_to(
    pens: PenCorpus, tmp_path: Path
) -> None:
    trainer = Trainer(reader_task(pens), TrainConfig(), tmp_path, {})
    trainer.save()
    tensors, facts = checkpoint.load(tmp_path / CHECKPOINT)
    for group in "model", "average", "best":
        names = [name for name in tensors if name.startswith(f"{group}.readout.parts.")]
        whole = torch.cat([tensors.pop(name) for name in names]).T.contiguous()
        tensors[f"{group}.readout.weight"] = whole
    checkpoint.save(tmp_path / CHECKPOINT, tensors, facts)
    with pytest.raises(ValueError, match="called its weights otherwise; convert it"):
        Trainer(reader_task(pens), TrainConfig(), tmp_path, {})


@pytest.mark.parametrize("both_ways", [False, True])
def test_a_reader_and_its_twin_learn_to_read(both_ways: bool) -> None:
    """Two words of one hand, until they are read."""
    torch.manual_seed(0)
    generator = np.random.default_rng(1)
    lines = [write(text, random_style(generator), generator) for text in ("on", "tit")]
    rows = [cut(line_of(line.strokes) or []) for line in lines]
    batch = collate(rows, [line.text for line in lines])
    model = make_reader(ReaderConfig(units=24, both_ways=both_ways))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for update in range(1, 151):
        nats, _ = row_losses(model, batch, model.initial_state(2))
        optimizer.zero_grad()
        nats.sum().backward()
        optimizer.step()
        if update % 25 == 0:
            logits, _ = model(batch.pieces, batch.lengths, model.initial_state(2))
            parts = [logits[:length, row].detach() for row, length in enumerate(batch.lengths)]
            read = ["".join(r.character for r in best_path(part.numpy())) for part in parts]
            if read == [line.text for line in lines]:
                return
    pytest.fail(f"it reads {read}")


def test_what_reads_drops_nothing_of_what_it_sees() -> None:
    """Also in the laboratory, which reads with the model of a run."""
    served = KINDS["reader"].model(asdict(ReaderConfig(units=4, output_dropout=0.5)))
    assert served.config == ReaderConfig(units=4)


def test_an_epoch_is_as_many_characters_as_are_read_spaces_too(pens: PenCorpus) -> None:
    inks = [replace(pens.inks[0], text=text) for text in ("a b", "cd")]
    task = reader_task(pens)
    assert task.amount(inks) == 5
    assert int(task.collated(inks, None)[-1].sum()) == 5  # what the loss is a mean over


@pytest.mark.parametrize(
    ("data", "reordered"), [({}, False), ({"reordered": 0.0}, False), ({"reordered": 0.01}, True)]
)
def test_a_reader_is_used_to_what_any_of_its_rows_had(
    data: dict[str, float], reordered: bool
) -> None:
    assert learned_reordered({"data": data}) is reordered


def test_the_recipes_are_of_a_reader_and_its_twin() -> None:
    reader, twin = read_recipe("reader"), read_recipe("reader-twin")
    assert (reader.kind, twin.kind) == ("reader", "reader")
    assert (reader.model.both_ways, twin.model.both_ways) == (False, True)
    assert twin.data == read_recipe("reader-on").data  # of what it was trained on to the end
    assert reader.batch == twin.batch
    parameters = [sum(p.numel() for p in make_reader(r.model).parameters()) for r in (reader, twin)]
    assert parameters[1] == pytest.approx(parameters[0], rel=0.02)
