"""The task `ranking`: its metrics, its loss and its data by hand; an export that is found out."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from lab import experiment
from lab.export import compare, export, trained
from lab.graphs import PartGraph
from lab.plan import read_plans
from lab.tasks.ranking.data import (
    PICTURES,
    TABLE,
    Entry,
    _divided,
    base_of,
    distinct,
    read_captioned,
)
from lab.tasks.ranking.model import RankingConfig, RankingModel, SentenceStep, Unit
from lab.tasks.ranking.score import cosine_scores, order_scores, ranking_loss, ranks, retrieval
from lab.tasks.ranking.task import Ranking
from models.norms import EPSILON, BatchNorm, LayerNorm, fold
from models.sentence import UNKNOWN

_ONE = experiment.load("ranking")
_RECIPE = read_plans(_ONE, quick=True)[0].full("layer", 1e-2, 0)


@pytest.fixture(scope="module")
def task() -> Any:
    torch.manual_seed(0)
    return _ONE.task(_RECIPE, _ONE.data(_RECIPE, None))


def test_pictures_and_sentences_are_exported_as_points_of_one_sphere(task: Ranking) -> None:
    pictures, words = (
        trained(part, task.model, torch.float64)["point"] for part in _ONE.parts(task)
    )
    assert pictures.shape == words[-1].shape
    assert np.linalg.norm(pictures, axis=1) == pytest.approx(1, abs=1e-4)
    assert np.linalg.norm(words[-1], axis=1) == pytest.approx(1, abs=1e-4)


def test_a_caption_below_its_picture_in_every_coordinate_is_in_order() -> None:
    captions = torch.tensor([[0.1, 0.5], [0.9, 0.4]])
    pictures = torch.tensor([[0.2, 0.6], [0.5, 0.5]])
    expected = torch.tensor([[0.0, 0.0], [-(0.7**2), -(0.4**2)]])
    assert torch.allclose(order_scores(captions, pictures), expected)
    # It is an order: a picture above its caption is one, a caption above its picture is none.
    assert (order_scores(pictures, captions)[0] < 0).all()


def test_the_cosine_of_vectors_of_unit_length() -> None:
    points = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    assert torch.allclose(cosine_scores(points, points), torch.tensor([[1.0, 0.6], [0.6, 1.0]]))


def test_the_loss_is_that_of_the_paper_term_by_term() -> None:
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    total = 0.0
    for own in range(5):
        for other in set(range(5)) - {own}:
            for wrong in (scores[other, own], scores[own, other]):
                total += max(0.0, 0.2 - scores[own, own].item() + wrong.item())
    assert ranking_loss(scores, 0.2).item() == pytest.approx(total / 5)


@pytest.mark.parametrize(("score", "margin"), [("order", 0.05), ("cosine", 0.2)])
def test_each_score_is_learned_by_the_margin_of_its_paper(
    task: Ranking, score: str, margin: float
) -> None:
    model = replace(_RECIPE.model, score=score)
    torch.manual_seed(0)
    other = _ONE.task(replace(_RECIPE, model=model), task.data)
    batch, _ = other.batch(0)
    pictures, words = batch
    scores = other.scores(other.model.sentences(words), other.model.pictures(pictures))
    found, _ = other.loss(batch, ())
    assert found.item() == pytest.approx(ranking_loss(scores, margin).item())


def test_ranks_and_recall_of_a_case_made_by_hand() -> None:
    # Captions ask: the first finds its picture at once, the second after another, the third last.
    scores = torch.tensor([[3.0, 1.0, 2.0], [3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    assert ranks(scores).tolist() == [1, 2, 3]
    assert ranks(scores.t()).tolist() == [3, 2, 3]  # the first picture: all three score the same
    figures = retrieval(scores)
    assert figures["pictures R@1"] == pytest.approx(100 / 3)
    assert figures["pictures R@5"] == 100
    assert figures["captions R@1"] == 0
    assert (figures["pictures rank"], figures["captions rank"]) == (2, pytest.approx(8 / 3))
    assert figures["rank"] == pytest.approx((2 + 8 / 3) / 2)


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_a_space_that_is_one_point_or_diverged_ranks_last(value: float) -> None:
    assert ranks(torch.full((4, 4), value)).tolist() == [4] * 4


def _row(unified: str, name: str, **more: str) -> dict[str, str]:
    row = {"unified": unified, "skin": "", "category": "People", "subcategory": "person"}
    return row | {"name_en": name, "keywords_en": f"{name}|it's"} | more


def test_a_picture_that_two_emoji_share_is_one_with_the_names_of_both() -> None:
    rows = [_row("1F1EB", "France"), _row("1F1F2", "St. Martin"), _row("1F600", "face"),
            _row("1F601", "toned face", skin="1F3FB")]  # fmt: skip
    images = np.stack([np.full((2, 2, 3), shade, np.uint8) for shade in (1, 1, 2, 3)])
    entries, kept = distinct(rows, images, "en")
    assert kept[:, 0, 0, 0].tolist() == [1, 2]
    assert entries[0].phrases == [
        ["france"], ["france"], ["it", "'s"], ["st", ".", "martin"], ["st", ".", "martin"],
        ["it", "'s"],
    ]  # fmt: skip
    others = [row | {"name_de": "Fahne", "keywords_de": "Land"} for row in rows]
    assert distinct(others, images, "de")[0][1].phrases == [["fahne"], ["land"]]


def test_the_genders_hair_and_directions_of_an_emoji_have_one_base() -> None:
    running = ("1F3C3", "1F3C3-200D-2640-FE0F", "1F3C3-200D-2642-FE0F-200D-27A1-FE0F")
    assert {base_of(_row(points, "")) for points in running} == {"1F3C3"}
    teachers = ("1F468-200D-1F3EB", "1F469-200D-1F3EB", "1F9D1-200D-1F3EB")
    assert len({base_of(_row(points, "")) for points in teachers}) == 1
    assert base_of(_row("1F468-200D-1F680", "")) != base_of(_row(teachers[0], ""))
    families = ("1F46A", "1F468-200D-1F469-200D-1F466")
    assert {base_of(_row(f, "", subcategory="family")) for f in families} == {"family"}


def test_no_picture_is_in_two_parts_and_flags_are_judged_apart() -> None:
    data = read_captioned(None, "en", 0.15)
    parts = [{pair.picture for pair in part}
             for part in (data.train, data.validation, data.test, data.flags)]  # fmt: skip
    assert sum(map(len, parts)) == len(set.union(*parts))
    assert all(parts)
    flags = {picture for picture, name in enumerate(data.names) if "bar" in name.split()}
    assert parts[3] <= flags
    assert flags & parts[0]  # some are learned
    assert not flags & (parts[1] | parts[2])


def test_what_an_emoji_is_held_out_for_hangs_on_no_order() -> None:
    """That of a set is another in every process, which would test on what another learned from."""
    entries = [Entry(f"{n}", "Symbols", [[f"name{n}"]]) for n in range(500)]
    images = np.zeros((500, 1, 1, 3), np.uint8)
    there, back = (_divided("some", some, images, 0.1) for some in (entries, entries[::-1]))
    for part in ("validation", "test"):
        held = [{data.names[p.picture] for p in getattr(data, part)} for data in (there, back)]
        assert held[0] == held[1], part
        assert len(held[0]) == 50


def test_a_folder_is_read_in_its_language_as_it_stands(tmp_path: Path) -> None:
    """A quotation mark in a name quotes nothing."""
    rows = [_row(f"1F60{n}", "", skin="") for n in range(10)]
    for n, row in enumerate(rows):
        row |= {"name_de": f'"{"abcdefghij"[n]} ist', "keywords_de": "gut|so"}
    table = ["\t".join(line) for line in (rows[0].keys(), *(row.values() for row in rows))]
    (tmp_path / TABLE).write_text("\n".join(table) + "\n", "utf-8")
    images = np.arange(120, dtype=np.uint8).reshape(10, 2, 2, 3)
    np.savez(tmp_path / PICTURES, images=images)
    recipe = replace(_RECIPE, model=replace(_RECIPE.model, language="de"))
    data = _ONE.data(replace(recipe, data=replace(recipe.data, validation_fraction=0.2)), tmp_path)
    assert data.names == [f"{letter} ist" for letter in "abcdefghij"]
    assert data.pictures.tolist() == images.tolist()
    again = read_captioned(tmp_path, "de", 0.2)
    assert (again.sha256, again.train, again.test) == (data.sha256, data.train, data.test)
    assert read_captioned(tmp_path, "en", 0.2).sha256 != data.sha256
    counts = {part: len(getattr(data, part)) for part in ("train", "validation", "test", "flags")}
    assert counts == {"train": 6, "validation": 2, "test": 2, "flags": 0}
    assert counts.items() <= _ONE.facts(data).items()


def test_pictures_are_in_0_to_1_and_the_best_weights_are_chosen_by_the_rank_both_ways(
    task: Ranking,
) -> None:
    pictures = task.pictures(task.data.test)
    assert pictures.min() >= 0
    assert pictures.max() == 1
    found = task.validate()
    assert found == retrieval(task.score(task.data.validation))["rank"]
    assert task.figures["pictures rank"] != task.figures["captions rank"]


def test_only_words_that_are_learned_have_numbers_and_a_pair_has_all_its_phrases() -> None:
    entries = [
        Entry(f"{n}", "Symbols", [[f"a{n}"] * 2, ["b", f"a{n}"], [f"c{n}"]]) for n in range(20)
    ]
    data = _divided("twenty", entries, np.zeros((20, 1, 1, 3), np.uint8), 0.15)
    assert (len(data.validation), len(data.test), len(data.train)) == (3, 3, 14)
    assert data.vocabulary == 2 + 14 + 1
    for pair in (*data.validation, *data.test):
        (first, _), (common, other), _ = pair.phrases
        assert first == other == UNKNOWN != common
    assert len({pair.phrases[0][0] for pair in data.train} - {UNKNOWN}) == 14
    assert {pair.phrases[2][0] for pair in data.train} == {UNKNOWN}  # which is there once


def test_points_are_of_unit_length_and_on_the_positive_side_where_there_is_an_order() -> None:
    x = torch.tensor([[3.0, -4.0], [-6.0, 8.0]])
    torch.testing.assert_close(Unit("order", 2)(x), torch.tensor([[0.6, 0.8]] * 2))
    expected = torch.tensor([[0.6, -0.8], [-0.6, 0.8]])
    torch.testing.assert_close(Unit("cosine", 2)(x), expected)
    assert not Unit("order", 2)(torch.zeros(1, 2)).any()  # and is no NaN


def test_a_score_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(ValueError, match=r"model\.score is 'dot'; it must be 'order' or 'cosine'"):
        RankingConfig(score="dot")  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_only_sentences_are_normalised(norm: Any) -> None:
    model = RankingModel(RankingConfig(norm=norm, channels=2, picture_units=4, dimensions=4), 9)
    kinds = LayerNorm, BatchNorm
    assert not any(isinstance(module, kinds) for module in model.pictures.modules())
    assert any(isinstance(module, kinds) for module in model.sentences.modules())


def test_a_rank_is_better_the_lower_and_recall_the_higher() -> None:
    better = {metric.name: metric.higher_is_better for metric in _ONE.metrics}
    assert better == {name: "R@" in name for name in better}
    assert {"rank", "pictures R@1"} <= better.keys()


def test_a_sheet_is_of_the_best_to_the_worst_and_frames_what_was_asked_for(
    task: Ranking, saved: list[Figure], tmp_path: Path
) -> None:
    _ONE.picture(task, tmp_path)
    (figure,) = saved
    scores, pairs = task.score(task.data.test), task.data.test
    rank = ranks(scores)
    rows = [figure.axes[i : i + 7] for i in range(0, 56, 7)]
    told = [int(row[0].get_ylabel().removeprefix("rank ")) for row in rows]
    assert told == sorted(told)
    assert (told[0], told[-1]) == (rank.min(), rank.max())
    best = int(rank.argsort(stable=True)[0])
    assert rows[0][1].get_title(loc="left") == task.data.names[pairs[best].picture]
    asked, *found = (torch.tensor(axes.images[0].get_array()) for axes in rows[0])
    for shown, pair in zip(found, scores[best].argsort(descending=True)[:6].tolist(), strict=True):
        assert torch.equal(shown, task.data.pictures[pairs[pair].picture])
    assert torch.equal(asked, task.data.pictures[pairs[best].picture])
    for place, row in zip(told, rows, strict=True):
        framed = [n for n, axes in enumerate(row) if axes.spines["top"].get_visible()]
        assert framed == ([place] if place <= 6 else [])


def test_pictures_are_mirrored_at_random_and_moved_but_their_colours_stay(task: Ranking) -> None:
    pictures = torch.zeros(40, 9, 9, 3)
    pictures[:, 3, 4, 0] = pictures[:, 3, 5, 1] = 1.0  # red, and green right of it
    varied = task._varied(pictures, Random(0))
    places = [varied[..., color].nonzero()[:, 1:] for color in range(3)]
    red, green, blue = places
    assert len(blue) == 0
    moves = (green - red).tolist()
    assert [0, 1] in moves
    assert [0, -1] in moves
    assert all(move in ([0, 1], [0, -1]) for move in moves)
    assert len(set(red[:, 0].tolist())) == 1  # one move a batch
    assert {int(task._varied(pictures, Random(n))[0, :, :, 0].nonzero()[0, 0]) for n in range(40)
            } == {1, 2, 3, 4, 5}  # fmt: skip


def test_a_caption_is_of_some_phrases_in_any_order_and_no_longer_than_it_may_be(
    task: Ranking,
) -> None:
    phrases = [[2], [3, 4], [5]]
    drawn = {tuple(task._drawn(phrases, Random(n))) for n in range(200)}
    assert {(2,), (3, 4), (5, 2), (2, 3, 4, 5), (3, 4, 5, 2)} <= drawn
    assert len(drawn) == 3 + 6 + 6
    long = [[2] * task.model.config.longest, [3]]
    assert task._joined(long) == long[0]


def test_flags_are_judged_among_themselves(task: Ranking) -> None:
    found = task.test()
    flags = retrieval(task.score(task.data.flags))["rank"]
    assert found.pop("flags rank") == flags != found["rank"]
    assert found == retrieval(task.score(task.data.test))


def test_a_batch_is_a_function_of_seed_and_update(task: Ranking) -> None:
    torch.manual_seed(1)
    again = _ONE.task(_RECIPE, task.data)
    last = task.updates_per_epoch + 1
    task.batch(0)
    for mine, other in zip(task.batch(last)[0], again.batch(last)[0], strict=True):
        assert torch.equal(mine, other)
    assert not torch.equal(task.batch(0)[0][0], task.batch(1)[0][0])


def test_scores_of_a_task_are_those_of_each_pair_alone(task: Ranking) -> None:
    pairs = task.data.test
    scores = task.score(pairs)
    task.model.eval()
    for i, j in ((0, 0), (1, 3), (5, 2)):
        caption = task.model.sentences(task.captions([pairs[i]]))
        alone = task.scores(caption, task.model.pictures(task.pictures([pairs[j]])))
        assert alone.item() == pytest.approx(scores[i, j].item(), abs=1e-5)


class _Padded(SentenceStep):
    """The planted defect: what follows a sentence is read as if it were of it."""

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        *state, word = inputs
        stack, embedding = self.model.encoder.stack, self.model.encoder.embedding
        _, after = stack.step(embedding(word), tuple(state))
        return *after, self.model.unit(after[0])


@pytest.mark.long
def test_an_export_is_green(task: Ranking, tmp_path: Path) -> None:
    report = export(_ONE, task, _RECIPE, tmp_path / "x")
    assert len(report) == 8
    assert all(finding.holds for finding in report)


@pytest.mark.long
def test_an_export_that_reads_padding_is_red(task: Ranking, tmp_path: Path) -> None:
    _, part = _ONE.parts(task)
    model = fold(task.model)
    report = compare(PartGraph(replace(part, step=_Padded), model, tmp_path), model)
    holds = {finding.name: finding.holds for finding in report}
    assert not holds.pop("sentence, structure")
    assert not holds.pop("sentence, rounding")
    assert all(holds.values())


def test_a_point_at_the_origin_is_divided_by_more_than_nothing() -> None:
    """And has a gradient: the epsilon is within the root."""
    x = torch.tensor([[0.0, 0.0], [3e-3, 4e-3]], requires_grad=True)
    unit = Unit("cosine", 2)(x)
    assert torch.allclose(unit[1], x[1] / (25e-6 + EPSILON) ** 0.5)
    unit.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
