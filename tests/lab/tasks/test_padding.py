"""Padding: TREC's lines, batches by length, masked statistics, movement, and a defect exported."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure
from torch import Tensor

from export.parity.operators import compare_operator
from lab import experiment
from lab.export import compare
from lab.graphs import PartGraph
from lab.plan import read_plans
from lab.sequences import lengths_of, similar
from lab.steps import RowStep
from lab.tasks.padding.data import parse, read_sentences
from lab.tasks.padding.experiment import EXPERIMENT, Padded
from lab.tasks.padding.model import PaddingConfig, SentenceClassifier
from lab.tasks.padding.movement import movement
from lab.tasks.padding.picture import draw
from tests.training.legible import LEAST_PX, smallest_letters_px


def _made(norm: str) -> SentenceClassifier:
    torch.manual_seed(0)
    config = PaddingConfig(norm=norm, places=9, features=8)  # type: ignore[arg-type]
    model = SentenceClassifier(config, 20, 3)
    with torch.no_grad():
        for parameter in model.parameters():  # no bias is left at zero
            parameter.add_(0.2 * torch.rand_like(parameter))
    return model


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_of_padding_that_leaves_no_word_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="must be 0 or more and below 1"):
        PaddingConfig(padding=share)


def _words(lengths: list[int], width: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(1, 20, (len(lengths), width), generator=generator)
    return torch.where(torch.arange(width) < torch.tensor(lengths).unsqueeze(1), words, 0)


def test_a_line_ends_where_it_ends_in_the_file() -> None:
    assert parse(b"3 Who \x85 is it ?\n0 What\x0bfor\n") == [
        (3, ("who", "is", "it", "?")),
        (0, ("what", "for")),
    ]


def test_nothing_of_the_test_is_learned_and_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "TREC.train.all").write_text("0 a b\n0 a b\n1 b c\n1 c a d\n0 c b d\n1 a d\n")
    (tmp_path / "TREC.test.all").write_text("1 B C\n0 d d e\n")
    found = read_sentences(tmp_path, 0.25, 5)
    digests = {found.sha256}
    for name in ("TREC.train.all", "TREC.test.all"):  # whatever file is another, the data are
        with (tmp_path / name).open("a") as file:
            file.write("0 d d e\n")
        digests.add(read_sentences(tmp_path, 0.25, 5).sha256)
    assert len(digests) == 3
    assert (len(found.train.classes), len(found.validation.classes)) == (3, 1)
    assert len(found.test.classes) == 2
    seen = {tuple(row) for row in torch.cat([found.train.inputs, found.validation.inputs]).tolist()}
    assert len(seen) == 4
    assert tuple(found.test.inputs[0].tolist()) not in seen
    assert found.test.inputs[1].tolist()[2:] == [1, 0, 0]  # e was never learned
    with pytest.raises(ValueError, match="--quick needs no data"):
        read_sentences(tmp_path / "none", 0.25, 5)


def test_a_word_of_validation_or_test_alone_has_no_number_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "TREC.train.all").write_text("0 a b\n1 b a\n0 b b a\n1 a v v\n")
    (tmp_path / "TREC.test.all").write_text("0 a t t\n")
    found = read_sentences(tmp_path, 0.25, 3)
    b, a = 2, 3  # 0 is padding, 1 any word that was not learned
    assert found.words == 4
    assert found.train.inputs.tolist() == [[a, b, 0], [b, a, 0], [b, b, a]]
    assert found.validation.inputs.tolist() == [[a, 1, 1]]
    assert found.test.inputs.tolist() == [[a, 1, 1]]


def test_a_word_that_is_learned_once_has_no_number_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "TREC.train.all").write_text("0 a a\n1 once a\n0 a a a\n1 a b\n")
    (tmp_path / "TREC.test.all").write_text("0 once\n")
    found = read_sentences(tmp_path, 0.25, 2)
    assert (found.words, found.train.inputs[1].tolist()) == (3, [1, 2])
    assert found.test.inputs.tolist() == [[1, 0]]


def test_a_pool_puts_like_lengths_side_by_side_and_loses_nothing() -> None:
    lengths = torch.randint(1, 30, (64,), generator=torch.Generator().manual_seed(0))

    def spread(pool: int) -> float:
        batches = similar(lengths, 4, pool, torch.Generator().manual_seed(1))
        assert sorted(batches.flatten().tolist()) == list(range(64))
        rows = lengths[batches]
        return (rows.amax(1) - rows.amin(1)).double().mean().item()

    assert spread(16) < 2.5 < spread(4) < 10 < spread(1)
    # What does not fill a batch is others each time.
    left = [set(range(64)) - set(similar(lengths, 5, 4, torch.Generator().manual_seed(seed))
                                 .flatten().tolist()) for seed in range(3)]  # fmt: skip
    assert [len(some) for some in left] == [4] * 3
    assert len(set.union(*left)) > 4


def test_batches_and_what_is_in_them_are_of_the_seed_in_no_order_of_length() -> None:
    lengths = torch.arange(1, 41) // 2

    def batches(seed: int, pool: int) -> Tensor:
        return similar(lengths, 4, pool, torch.Generator().manual_seed(seed))

    assert torch.equal(batches(1, 10), batches(1, 10))
    assert not torch.equal(batches(1, 10), batches(2, 10))
    longest = lengths[batches(1, 10)].amax(1).tolist()
    assert longest not in (sorted(longest), sorted(longest, reverse=True))
    rows = [{frozenset(row) for row in batches(seed, 1).tolist()} for seed in (1, 2)]
    assert rows[0] != rows[1]


def test_a_sentence_of_more_words_than_places_keeps_its_first(tmp_path: Path) -> None:
    (tmp_path / "TREC.train.all").write_text("0 a b b\n1 b a a b\n0 b a\n1 a\n")
    (tmp_path / "TREC.test.all").write_text("2 a a b b\n")
    found = read_sentences(tmp_path, 0.25, 3)
    b, a = 2, 3
    assert found.train.inputs.tolist() == [[a, b, b], [b, a, a], [b, a, 0]]
    assert found.test.inputs.tolist() == [[a, a, b]]
    assert found.classes == 3  # one of them in the test alone


def test_no_word_is_cut_off_where_little_padding_is_asked() -> None:
    task = _task(0.2)
    first = sum(int(lengths_of(task.batch(update)[0][0]).sum()) for update in range(16))
    rows = torch.cat([task.drawn(update) for update in range(16)])
    assert first == int(lengths_of(task.train.inputs[rows]).sum())


def _task(padding: float) -> Padded:
    (plan, *_) = read_plans(EXPERIMENT, quick=True)
    recipe = replace(plan.recipe, model=replace(plan.recipe.model, padding=padding))
    return EXPERIMENT.task(recipe, EXPERIMENT.data(recipe, None))


@pytest.mark.parametrize(("asked", "least", "most"), [(0.0, 0, 5), (0.65, 62, 68), (0.8, 77, 83)])
def test_batches_have_the_share_of_padding_that_was_asked(
    asked: float, least: float, most: float
) -> None:
    task = _task(asked)
    empty = [(task.batch(update)[0][0] == 0).double().mean().item() for update in range(16)]
    assert least <= 100 * sum(empty) / len(empty) <= most
    found = task.test()
    assert least - 3 <= found["padding"] <= most + 3
    assert found["nats"] == task.measure(task.held_out)["nats"]
    assert task.model.training  # as it was


def test_padded_batches_mix_short_and_long() -> None:
    """Sorted among some of them, half of the batches would have short sentences alone."""
    task = _task(0.65)
    middle = lengths_of(task.train.inputs).median()
    for update in range(16):
        lengths = lengths_of(task.batch(update)[0][0])
        assert lengths.min() < middle < lengths.max()


def test_masked_statistics_are_those_of_the_words_alone() -> None:
    words = _words([3, 7], 7)
    wide = torch.nn.functional.pad(words, (0, 5))
    for norm, changes in (("batch-masked", False), ("batch", True), ("layer", False)):
        model = _made(norm).double()
        with torch.no_grad():
            moved = (model(wide) - model(words)).abs().max()
        assert (moved > 1e-3) == changes, norm
        assert changes or moved < 1e-12, norm


def test_a_masked_norm_learns_of_words_alone_and_another_of_zeros_in_the_padding() -> None:
    words = _words([3, 7], 30)
    for norm, places in (("batch-masked", 10), ("batch", 60)):
        model = _made(norm).double()
        real = words > 0
        x = model.embedding(words) * real.unsqueeze(-1)
        mean = (x + model.attention(x, real))[real].sum(0) / places
        model(words)
        assert torch.allclose(model.norm.running_mean[0], 0.1 * mean, atol=1e-12), norm


@pytest.mark.parametrize(
    ("norm", "in_training"),
    [("layer", False), ("none", False), ("batch", True), ("batch-masked", True)],
)
def test_rows_move_with_others_in_training_under_batch_norm_and_never_when_served(
    norm: str, in_training: bool
) -> None:
    figures = movement(_made(norm), [_words([3, 9, 1, 5], 9), _words([2, 2, 8, 4], 9)])
    assert (figures["moved in training"] > 0.01) == in_training
    assert in_training or figures["moved in training"] < 1e-5
    assert figures["moved served"] < 1e-5


def test_movement_is_the_largest_over_the_size_of_the_logits() -> None:
    class Counts(torch.nn.Module):
        def forward(self, words: Tensor) -> Tensor:
            return torch.stack([words.sum(1), (words == 0).sum(1)], 1).double()

    found = movement(Counts(), [torch.tensor([[3, 0, 0], [4, 0, 0], [0, 0, 0]])[:2]])
    assert found["moved served"] == pytest.approx(2 / (25 / 4) ** 0.5)
    assert found["other bits served"] == 100


def test_of_rows_that_move_the_farthest_counts_and_a_last_bit_is_a_move() -> None:
    """Of every batch that is given."""

    class Sees(torch.nn.Module):
        def forward(self, words: Tensor) -> Tensor:
            padding = (words == 0).sum(1, keepdim=True).double()
            return 1.0 + torch.where(padding > 1, padding, padding * 1e-12)

    rows = [torch.tensor([[1, 2, 3]]), torch.tensor([[1, 2, 0]]), torch.tensor([[1, 0, 0]])]
    found = movement(Sees(), rows)
    assert found["moved served"] == pytest.approx(2)
    assert found["other bits served"] == pytest.approx(200 / 3)


def test_what_padding_does_is_told_of_eight_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[Tensor]] = []
    moved = "lab.tasks.padding.experiment.movement"
    monkeypatch.setattr(moved, lambda _, batches: asked.append(list(batches)) or {})
    task = _task(0.0)
    task.test()
    expected = [task.batch(update)[0][0] for update in range(8)]
    assert all(map(torch.equal, asked[0], expected))
    assert len(asked[0]) == 8


def test_a_softmax_keeps_the_bits_of_a_row_in_any_batch() -> None:
    assert compare_operator("Softmax").differing_rows == 0


class Unmasked(RowStep):
    """A defect: padding is taken for a word."""

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return super().forward(inputs[0] + (inputs[0] == 0).long())


@pytest.mark.long
def test_padding_taken_for_words_turns_the_report_red(tmp_path: Path) -> None:
    task = _task(0.0)
    (part,) = experiment.load("padding").parts(task)

    def unmasked(model: SentenceClassifier) -> Unmasked:
        sound = part.step(model)
        return Unmasked(model, *sound.row_ports, *sound.output_ports)

    graph = PartGraph(replace(part, step=unmasked), task.model, tmp_path)
    red = [finding.name for finding in compare(graph, task.model) if not finding.holds]
    assert red == ["model, structure", "model, rounding"]
    assert int(lengths_of(part.inputs["words"]).min()) < part.inputs["words"].shape[1]


def test_a_norm_that_diverged_in_all_seeds_of_a_case_has_a_picture_too(tmp_path: Path) -> None:
    """ "Not a number" is a result, and no number in a file of results."""
    seeds = {"error": [20.0, 22.0], "padding": [0.5, 0.5], "moved in training": [1e-7, 2e-7]}
    well = {name: {"median": both[0], "seeds": both} for name, both in seeds.items()}
    lost = {name: {"median": None, "seeds": [None, None]} for name in seeds}
    cases = {
        "0%": {"norms": {"layer": {"test": well}, "none": {"test": lost}}},
        "50%": {"norms": {"layer": {"test": well}, "none": {"test": well}}},
    }
    (tmp_path / "padding.json").write_text(json.dumps({"cases": cases}), "utf-8")
    EXPERIMENT.picture(_task(0.0), tmp_path)
    assert (tmp_path / "padding-share.png").stat().st_size > 5000


def test_a_seed_that_diverged_counts_as_worst_in_the_picture_too(
    tmp_path: Path, saved: list[Figure]
) -> None:
    """Its norm would else have no mark at that share, or one of the better seeds."""
    found = {
        "error": [20.0, None, 24.0], "padding": [50.0] * 3, "moved in training": [1.0, None, 3.0]
    }  # fmt: skip
    test = {name: {"median": seeds[0], "seeds": seeds} for name, seeds in found.items()}
    cases = {"cases": {"50%": {"norms": {"layer": {"test": test}}}}}
    (tmp_path / "padding.json").write_text(json.dumps(cases), "utf-8")
    draw(tmp_path)
    accuracy, moved = saved[0].axes
    assert [axes.lines[0].get_ydata().tolist() for axes in (accuracy, moved)] == [[76.0], [3.0]]
    (bar,) = accuracy.collections[0].get_segments()
    assert [y for _, y in bar] == [76.0, 80.0]


def test_a_picture_is_of_accuracy_and_movement_over_the_share_of_padding(
    tmp_path: Path, saved: list[Figure]
) -> None:
    def tested(**seeds: list[float]) -> dict[str, Any]:
        return {"test": {n: {"median": both[0], "seeds": both} for n, both in seeds.items()}}

    none = tested(**{"error": [20.0, 20.0], "padding": [1.0, 1.0], "moved in training": [0.0, 0.0]})
    much = tested(
        **{"error": [30.0, 32.0], "padding": [50.0, 50.0], "moved in training": [2.0] * 2}
    )
    cases = {"0%": {"norms": {"batch": none}}, "50%": {"norms": {"batch": much}}}
    (tmp_path / "padding.json").write_text(json.dumps({"cases": cases}), "utf-8")
    draw(tmp_path)
    accuracy, moved = (axes.lines[0] for axes in saved[0].axes)
    assert list(accuracy.get_xdata()) == list(moved.get_xdata()) == [1.0, 50.0]
    assert list(accuracy.get_ydata()) == [80.0, 69.0]
    assert list(moved.get_ydata()) == [1e-9, 2.0]
    told = [(axes.get_ylabel(), axes.get_yscale()) for axes in saved[0].axes]
    assert told == [
        ("accuracy on the test sentences, %", "linear"),
        ("a row's logits beside others,\nrelative to alone, in training", "log"),
    ]
    places = {axes.get_xlabel() for axes in saved[0].axes}
    assert places == {"positions of a training batch that are padding, %"}
    (bars,) = saved[0].axes[0].collections
    assert [bar[:, 1].tolist() for bar in bars.get_segments()] == [[80.0, 80.0], [68.0, 70.0]]


def test_bars_of_two_norms_at_one_share_stand_side_by_side(
    tmp_path: Path, saved: list[Figure]
) -> None:
    well = {"error": [20.0], "padding": [50.0], "moved in training": [1e-7]}
    test = {name: {"median": seeds[0], "seeds": seeds} for name, seeds in well.items()}
    norms = {norm: {"test": test} for norm in ("layer", "batch", "none")}
    (tmp_path / "padding.json").write_text(
        json.dumps({"cases": {"50%": {"norms": norms}}}), "utf-8"
    )
    draw(tmp_path)
    for axes in saved[0].axes:
        places = [bars.get_segments()[0][0, 0] for bars in axes.collections]  # type: ignore[attr-defined]
        assert places == sorted(set(places))
        assert len(places) == 3
        assert sum(places) / 3 == pytest.approx(50.0)
    assert [text.get_text() for text in saved[0].legends[0].get_texts()] == list(norms)
    assert smallest_letters_px(saved[0]) >= LEAST_PX
