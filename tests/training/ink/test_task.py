"""Ink as something to train on: rows, batches, splits, and the loss of a point."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contract.alphabets import LONGEST_TEXT, WINDOW_SYMBOLS, encode
from models.handwriting import HandwritingConfig
from tests.training.pens import pen_task
from training.ink.compose import Rows, _rarity, join
from training.ink.corpus import PenBatch, PenCorpus, collate, is_held_out, read_pens, with_end
from training.ink.line import Tally
from training.ink.prepare import LONGEST_INK, Ink
from training.ink.task import PenTask, point_losses, vary
from training.recipe import read_recipe


class AlmostOne:
    """A generator of the largest number below 1, and of the first of anything."""

    def random(self) -> float:
        return float(np.nextafter(1.0, 0.0))

    def integers(self, high: int) -> int:
        return 0


def test_the_largest_number_that_is_drawn_draws_the_last_line() -> None:
    inks = [Ink(str(i), np.zeros((1, 3), np.float32), 1.0, "one", "tablet") for i in range(200)]
    generator: Any = AlmostOne()
    assert Rows(inks).draw(1, generator).text == "199"


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


def test_a_text_of_four_characters_more_is_as_good_as_one_that_was_wanted() -> None:
    inks = [replace(RIGHT, text="abcdef"[:length]) for length in (1, 5, 6)]
    rows, generator = Rows(inks), np.random.default_rng(0)
    assert {len(rows.draw(1, generator).text) for _ in range(100)} == {1, 5}


def test_words_stand_apart_where_no_marks_are_set_whatever_they_end_with() -> None:
    rows, generator = Rows([replace(RIGHT, text="c,")]), np.random.default_rng(0)
    assert rows.draw(30, generator).text == "c, c, c, c, c, c, c, c, c, c,"


def test_a_row_leaves_room_for_the_end_of_its_text() -> None:
    rows, generator = (
        Rows([replace(RIGHT, text="c" * n) for n in (31, 32)]),
        np.random.default_rng(0),
    )
    assert {len(rows.draw(100, generator).text) for _ in range(20)} == {32, WINDOW_SYMBOLS - 1}


def test_three_of_five_marks_touch_what_they_stand_beside() -> None:
    mark = replace(RIGHT, text="!", isolated=True)
    rows, generator = Rows([LEFT, mark], marked=0.5), np.random.default_rng(0)
    joined = [rows._beside(LEFT, mark, False, generator) for _ in range(1000)]
    gaps = np.array([row.advance for row in joined]) - LEFT.advance - mark.advance
    touching = np.array([row.text == "ab!" for row in joined])
    assert touching.mean() == pytest.approx(0.6, abs=0.05)
    for which, (least, most) in ((touching, (0.3, 1.8)), (~touching, (2.5, 5.5))):
        assert least <= gaps[which].min() < least + 0.1
        assert most - 0.1 < gaps[which].max() <= most


def test_where_marks_are_set_words_touch_only_with_a_mark_of_their_own_between() -> None:
    words, mark = [replace(RIGHT, text=text) for text in ("ab,", '"c')], replace(RIGHT, text="!")
    rows = Rows([*words, replace(mark, isolated=True)], marked=0.1)
    generator = np.random.default_rng(0)
    joined = " ".join(rows.draw(30, generator).text for _ in range(50))
    assert "ab,ab" in joined
    assert 'c"c' in joined
    assert "c ab" in joined
    assert "cab" not in joined


def test_the_last_move_is_to_where_a_next_word_would_begin() -> None:
    moves = with_end(LEFT, gap=4.0)
    assert moves[:-1].tolist() == LEFT.offsets.tolist()
    assert moves[:, :2].sum(0) == pytest.approx([LEFT.advance + 4.0, 0])
    assert moves[-1, 2] == 1
    following = join(LEFT, RIGHT, gap=4.0).offsets[3, :2] - RIGHT.offsets[0, :2]
    assert moves[-1, :2] == pytest.approx(following)


def test_a_varied_row_is_slanted_wider_and_higher_on_its_baseline() -> None:
    varied = vary(LEFT, 0.5, np.log(2), np.log(3))
    x, y = LEFT.offsets[:, :2].cumsum(0).T
    places = varied.offsets[:, :2].cumsum(0)
    assert places == pytest.approx(np.stack([2 * x + 0.5 * y, 3 * y], axis=1), abs=1e-6)
    assert varied.advance == pytest.approx(places[:, 0].max())
    assert varied.offsets.dtype == np.float32
    assert (varied.offsets[:, 2] == LEFT.offsets[:, 2]).all()


def test_training_rows_are_varied_each_in_its_own_way_and_those_of_validation_are_not(
    pens: PenCorpus,
) -> None:
    plain = pen_task(pens)
    varied = replace(plain, varied=0.1)
    same = [pens.inks[0]] * 2

    def rows(task: PenTask, generator: np.random.Generator | None) -> list[torch.Tensor]:
        points = task.collated(same, generator).points[:-1]  # all but the move to a next word
        return [points[:, 0], points[:, 1]]

    as_written = rows(plain, np.random.default_rng(1))
    assert torch.equal(*as_written)
    first, second = rows(varied, np.random.default_rng(1))
    assert not torch.equal(first, second)
    change = torch.linalg.lstsq(as_written[0][:, :2], first[:, :2]).solution
    slant, width, height = change[1, 0], change[0, 0].log(), change[1, 1].log()
    assert min(abs(slant - width), abs(width - height), abs(height - slant)) > 1e-3
    assert 0.01 < (first - as_written[0])[:, :2].abs().mean() / as_written[0].abs().mean() < 0.5
    assert torch.equal(rows(varied, None)[0], as_written[0])


def test_a_batch_is_its_rows_padded(pens: PenCorpus) -> None:
    inks = pens.inks[:5]
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


def test_padding_does_not_change_the_loss(pens: PenCorpus) -> None:
    made = pen_task(pens)
    model = made.model.double()
    inks, gaps = sorted(pens.inks, key=lambda i: len(i.offsets))[:4], np.full(4, 3.0)

    def widened(batch: PenBatch) -> PenBatch:
        return PenBatch(batch.points.double(), batch.symbols, batch.length, batch.counts.double())

    batch = widened(collate(inks, gaps))
    loss, _ = made.loss(batch, model.initial_state(4))
    nats, _ = point_losses(model, batch, model.initial_state(4))
    assert (nats[batch.counts == 0] == 0).all()
    parts = [widened(collate([i], gaps[:1])) for i in inks]
    alone = [point_losses(model, part, model.initial_state(1))[0].sum() for part in parts]
    counts = [part.counts.sum() for part in parts]
    assert abs((loss - sum(alone) / sum(counts)).item()) < 1e-12
    mean_of_means = sum(a / c for a, c in zip(alone, counts, strict=True)) / 4
    assert abs((loss - mean_of_means).item()) > 1e-6


def test_the_loss_of_a_point_does_not_see_that_point(pens: PenCorpus) -> None:
    model = pen_task(pens).model.double()
    batch = collate(pens.inks[:1], np.full(1, 3.0))
    points = batch.points.double().requires_grad_()
    seen = PenBatch(points, batch.symbols, batch.length, batch.counts)
    nats, _ = point_losses(model, seen, model.initial_state(1))
    (gradient,) = torch.autograd.grad(nats[7, 0], points)
    assert (gradient[:8, 0, :2].abs().sum(1) > 0).all()  # it is scored, and those before are read
    assert (gradient[8:] == 0).all()


def test_rows_of_a_batch_are_alike_in_length(pens: PenCorpus) -> None:
    made = pen_task(pens)
    for pool in (0, 5):
        lengths = [PenBatch(*made.batch(8 * pool + i)[0]).counts.sum(0) for i in range(8)]
        ranges = sorted((float(row.min()), float(row.max())) for row in lengths)
        assert all(one[1] <= other[0] for one, other in pairwise(ranges))


def test_a_row_is_words_of_one_writer_within_the_limits(pens: PenCorpus) -> None:
    rows, generator = Rows(pens.inks), np.random.default_rng(0)
    wanted = {n: rows.draw(n, generator) for n in (1, 8, 20, 40) for _ in range(30)}
    for row in wanted.values():
        mine = [ink.text for ink in pens.inks if ink.writer == row.writer]
        left = row.text
        while left:
            word = max((t for t in mine if left == t or left.startswith(f"{t} ")), key=len)
            left = left[len(word) + 1 :]
        assert len(row.text) <= LONGEST_TEXT + 3
        assert len(row.offsets) <= LONGEST_INK
        assert row.offsets[-1, 2] == 1
    assert len(wanted[40].text) > len(wanted[8].text)


def test_a_writer_is_in_one_part_only(pens: PenCorpus) -> None:
    train, validation = pens.split(0.3)
    assert len(train) + len(validation) == len(pens.inks)
    writers = [{ink.writer for ink in part} for part in (train, validation)]
    assert not writers[0] & writers[1]
    assert all(writers)
    assert 0.1 < len(validation) / len(pens.inks) < 0.5
    more = PenCorpus("more", [*pens.inks[::-1], LEFT]).split(0.3)
    assert {ink.writer for ink in more[1]} - {"w"} == writers[1]


def test_of_one_writer_some_texts_are_held_out(pens: PenCorpus) -> None:
    mine = PenCorpus("mine", [replace(ink, writer="me") for ink in pens.inks])
    train, validation = mine.split(0.3)
    assert len(train) + len(validation) == len(pens.inks)
    texts = [{ink.text for ink in part} for part in (train, validation)]
    assert all(texts)
    assert not texts[0] & texts[1]


def test_a_rare_character_is_drawn_eight_times_as_often_at_most() -> None:
    inks = [*[replace(RIGHT, text="e" * 50)] * 20, replace(RIGHT, text="z")]
    assert _rarity(inks).tolist() == [1.0] * 20 + [8.0]


def test_a_text_is_drawn_the_more_often_the_rarer_its_rarest_character() -> None:
    """By how often it was written, not by how many lines have it."""
    inks = [replace(RIGHT, text=text) for text in ("e" * 31, "ez", "zy")]
    assert _rarity(inks) == pytest.approx([1, 16**0.35, 32**0.35])


def test_a_row_has_no_more_points_than_any_line_that_is_learned_from() -> None:
    for points, text in ((448, "c c"), (452, "c")):
        word = replace(RIGHT, offsets=np.tile(RIGHT.offsets, (points // 2, 1)))
        assert Rows([word]).draw(60, np.random.default_rng(0)).text == text


def test_who_is_held_out_is_so_for_good() -> None:
    """Weights of before would else be validated on whom they have learned from."""
    names = ("a", "writer-1", "ekw", "3")
    assert [is_held_out(name, 0.3) for name in names] == [False, True, True, False]


def test_isolated_characters_are_no_lines_to_hold_out(pens: PenCorpus) -> None:
    mine = [replace(ink, writer="me") for ink in pens.inks]
    boxed = [replace(RIGHT, writer=f"writer {n}", isolated=True) for n in range(20)]
    for part in PenCorpus("mine", [*mine, *boxed]).split(0.3):
        assert {ink.isolated for ink in part} == {True, False}


def test_a_saved_corpus_is_the_same(pens: PenCorpus, tmp_path: Path) -> None:
    boxed = replace(pens.inks[0], isolated=True)
    pens = PenCorpus(pens.name, [*pens.inks, boxed])
    pens.save(tmp_path / "pens.npz")
    loaded = read_pens(tmp_path / "pens.npz", Tally())
    assert [ink.isolated for ink in loaded.inks] == [False] * (len(pens.inks) - 1) + [True]
    assert loaded.sha256 == pens.sha256
    assert loaded.name == pens.name
    for ours, theirs in zip(loaded.inks, pens.inks, strict=True):
        assert (ours.text, ours.writer, ours.source, ours.advance) == (
            theirs.text,
            theirs.writer,
            theirs.source,
            theirs.advance,
        )
        assert ours.offsets.dtype == np.float32
        assert ours.offsets.tobytes() == theirs.offsets.tobytes()
    for last in (LEFT, replace(pens.inks[-1], writer="another")):
        assert PenCorpus(pens.name, [*pens.inks[:-1], last]).sha256 != pens.sha256


@pytest.mark.parametrize("how", ["cut", "other", "empty", "altered"])
def test_a_file_that_is_no_saved_corpus_is_refused(
    pens: PenCorpus, tmp_path: Path, how: str
) -> None:
    path = tmp_path / "pens.npz"
    pens.save(path)
    whole = path.read_bytes()
    middle = len(whole) // 2
    altered = whole[:middle] + bytes(b ^ 255 for b in whole[middle : middle + 64])
    content = {"cut": whole[:middle], "other": b"not a zip", "empty": b""}
    path.write_bytes(content.get(how, altered + whole[middle + 64 :]))
    with pytest.raises(ValueError, match=r"pens\.npz is no corpus"):
        read_pens(path, Tally())


@pytest.mark.parametrize(
    ("mark", "place", "byte"),
    [(b"PK\x01\x02", 10, 99), (b"PK\x01\x02", 8, 1), (b"PK\x05\x06", 18, 1)],
    ids=["in a way nobody knows", "with a password", "before its beginning"],
)
def test_a_corpus_that_says_it_is_packed_otherwise_is_refused(
    tmp_path: Path, mark: bytes, place: int, byte: int
) -> None:
    path = tmp_path / "pens.npz"
    PenCorpus("few", [LEFT, RIGHT]).save(path)
    packed = bytearray(path.read_bytes())
    packed[packed.rindex(mark) + place] = byte
    path.write_bytes(packed)
    with pytest.raises(ValueError, match=r"saved whole: .*pens\.npz cannot be unpacked: "):
        read_pens(path, Tally())


@pytest.mark.parametrize(
    ("name", "altered", "told"),
    [
        ("lengths", lambda a: a + np.eye(1, len(a), dtype=int)[0], "offsets is of"),
        ("lengths", lambda a: a[:-1], "offsets is of"),
        ("lengths", lambda a: np.r_[a[:1] + a[1:2], 0, a[2:]], "a text has no points"),
        ("lengths", lambda a: a.astype(float), "lengths is of float64"),
        ("offsets", lambda a: a[:, :2], "offsets is of"),
        ("offsets", lambda a: a.astype(float), "offsets is of float64"),
        ("offsets", lambda a: a * np.inf, "a number is not finite"),
        ("advances", lambda a: a + np.inf, "a number is not finite"),
        ("texts", lambda a: a[:-1], "has not one value for each text"),
        ("texts", lambda a: a.astype(bytes), "texts is of"),
        ("writers", lambda a: a[:-1], "writers has not one value"),
        ("isolated", lambda a: a.astype(int), "isolated is of int64"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_ink_that_does_not_belong_to_its_texts_is_refused(
    pens: PenCorpus, tmp_path: Path, name: str, altered: Callable[[Any], Any], told: str
) -> None:
    pens.save(tmp_path / "pens.npz")
    with np.load(tmp_path / "pens.npz") as file:
        content = dict(file)
    np.savez(tmp_path / "pens.npz", **content | {name: altered(content[name])})
    with pytest.raises(ValueError, match=rf"pens\.npz is no corpus that was saved whole: .*{told}"):
        read_pens(tmp_path / "pens.npz", Tally())


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


def test_rows_that_are_judged_end_a_usual_gap_after_their_ink(pens: PenCorpus) -> None:
    inks = pens.inks[:3]
    judged, usual = pen_task(pens).collated(inks, None), collate(inks, np.full(3, 4.0))
    assert torch.equal(judged.points, usual.points)


def test_rows_that_are_learned_from_end_after_gaps_of_their_own(pens: PenCorpus) -> None:
    batch = pen_task(pens).collated([pens.inks[0]] * 6, np.random.default_rng(0))
    assert len(set(batch.points[-1, :, 0].tolist())) == 6
