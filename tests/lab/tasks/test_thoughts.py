"""The task `thoughts`: sentences, loss and probes by hand, and an export that is found out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn import functional as F

from lab import experiment
from lab.export import compare
from lab.graphs import PartGraph
from lab.plan import read_plans
from lab.tasks.thoughts.data import read_stories, sentences_of
from lab.tasks.thoughts.model import ThoughtStep
from lab.tasks.thoughts.probe_data import Classed, Related, read_probes
from lab.tasks.thoughts.probes import accuracy, bag_of_words, held_out, predicted, relatedness
from lab.tasks.thoughts.task import Encoder, Thoughts
from lab.vocabulary import Vocabulary, words_of
from models.norms import fold
from models.sentence import PADDING, UNKNOWN, SentenceEncoder, padded

_ONE = experiment.load("thoughts")
_RECIPE = read_plans(_ONE, quick=True)[0].full("layer", 1e-2, 0)


@pytest.fixture(scope="module")
def task() -> Any:
    torch.manual_seed(0)
    return _ONE.task(_RECIPE, _ONE.data(_RECIPE, None))


def test_words_are_split_as_the_tokenised_sets_have_them() -> None:
    told = ["i", "do", "n't", "know", ",", "it", "'s", "1805", "!"]
    assert words_of("I don\u2019t know, it's 1805!") == told
    assert words_of("i do n't know , it 's 1805 !") == told
    assert words_of("i do n 't know , it 's 1805 !") == told


def test_a_vocabulary_has_the_most_frequent_words() -> None:
    words = Vocabulary([["b", "a", "a"], ["b", "c", "a"]], size=4)
    assert words.size == 4
    assert words.numbers(["a", "b", "c"]) == [2, 3, UNKNOWN]
    assert words.numbers([]) == [UNKNOWN]


def test_sentences_end_where_they_do() -> None:
    text = 'CHAPTER I\n\n"Well, Mr. Bolkónski?" said\nhe. He left.\n\n“Go!” She went... Then\n'
    assert sentences_of(text) == [
        ["well", ",", "mr", ".", "bolkónski", "?", "said", "he", "."],
        ["he", "left", "."],
        ["go", "!"],
        ["she", "went", ".", ".", "."],
    ]


def test_parts_share_no_sentence_and_neighbours_are_of_the_same_part() -> None:
    stories = read_stories(None, 100, 0.1)
    parts = [{p + move for p in part for move in (-1, 0, 1)}
             for part in (stories.train, stories.validation, stories.test)]  # fmt: skip
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(stories.sentences)


@pytest.mark.parametrize("norm", ["layer", "weight", "none"])
def test_a_sentence_is_what_its_words_one_by_one_make_it(norm: Any) -> None:
    torch.manual_seed(0)
    encoder = SentenceEncoder(9, 4, 5, norm, 6).double()
    sentences = [[2, 3, 4, 5], [6], [7, 8]]
    together = encoder.last(padded(sentences))
    for words, found in zip(sentences, together, strict=True):
        state = encoder.initial_state(1)
        for word in [*words, PADDING, PADDING]:
            state = encoder.step(torch.tensor([word]), state)
        torch.testing.assert_close(state[0][0], found, rtol=0, atol=1e-12)


def test_the_loss_counts_each_word_of_both_neighbours_and_their_ends(task: Thoughts) -> None:
    model, places = task.model, task.stories.train[:5]
    nats = []
    for place in places:
        thought = model.encoder.last(task.words([place]))
        for decoder, move in ((model.previous, -1), (model.following, 1)):
            words = task.stories.sentences[place + move]
            before = model.encoder.embedding(torch.tensor([[PADDING], *([w] for w in words)]))
            logits = model.readout(decoder(thought, before))[:, 0]
            targets = model.known(torch.tensor([*words, PADDING]))
            nats += F.cross_entropy(logits, targets, reduction="none").tolist()
    assert model.loss(*task.around(places)).item() == pytest.approx(np.mean(nats), rel=1e-5)


def test_words_that_are_not_predicted_are_unknown(task: Thoughts) -> None:
    known = task.model.readout.out_features
    assert task.model.known(torch.tensor([0, 5, known])).tolist() == [0, 5, UNKNOWN]


def test_vectors_come_back_in_the_order_of_the_sentences(task: Thoughts) -> None:
    sentences = task.material.probes.classed[0].sentences[:9]
    encoder = Encoder(task.model, task.stories)
    found = encoder(sentences)
    for words, vector in zip(sentences, found, strict=True):
        assert np.allclose(encoder([words])[0], vector, atol=1e-6)


def test_a_sentence_that_is_there_twice_is_in_one_fold() -> None:
    one = Classed("some", [[str(i % 30)] for i in range(60)], [0] * 60)
    folds = held_out(one, 10)
    assert sum(fold.astype(int) for fold in folds).tolist() == [1] * 60  # type: ignore[union-attr]
    assert all((fold[:30] == fold[30:]).all() for fold in folds)
    assert [f.tolist() for f in held_out(Classed("some", [["a"]] * 3, [0] * 3, 2), 10)] == [
        [False, False, True]
    ]


def test_the_accuracy_of_a_split_is_that_of_one_logistic_regression() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 3))
    classes = (x[:, 0] + random.normal(size=80) > 0).astype(int)
    one = Classed("some", [[str(i)] for i in range(80)], classes.tolist(), 50)
    scaled = (x - x[:50].mean(0)) / x[:50].std(0)
    model = LogisticRegression(C=0.03, tol=1e-6).fit(scaled[:50], classes[:50])
    assert accuracy(one, x) == pytest.approx(100 * model.score(scaled[50:], classes[50:]))
    assert np.isnan(accuracy(one, x * np.nan))


def test_a_score_between_two_is_shared_between_them() -> None:
    nothing = np.zeros((4, 1))  # features that tell nothing: the answer is the mean
    scores = np.array([1.0, 2.5, 4.75, 5.0])
    assert predicted(nothing, scores, nothing)[0] == pytest.approx(scores.mean(), abs=0.01)


def test_relatedness_is_told_of_what_pairs_share() -> None:
    probes = read_probes(None).related
    figures = relatedness(probes, bag_of_words)
    assert figures["SICK r"] > 0.8
    shuffled = np.random.default_rng(0).permutation(probes.scores).tolist()
    unrelated = relatedness(Related(probes.pairs, shuffled, probes.test), bag_of_words)
    assert unrelated["SICK r"] < 0.5
    assert unrelated["SICK MSE"] > figures["SICK MSE"]


def test_a_sample_keeps_the_test_apart() -> None:
    one = Classed("some", [[str(i)] for i in range(50)], list(range(50)), 30)
    some = one.sample(10)
    assert some.test == 10
    assert all(c < 30 for c in some.classes[:10])
    assert all(c >= 30 for c in some.classes[10:])
    assert [[str(c)] for c in some.classes] == some.sentences


class _Late(ThoughtStep):
    """The planted defect: the sentence before its last word."""

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        *after, _ = super().forward(*inputs)
        return *after, inputs[0].clone()


@pytest.mark.parametrize(("step", "sound"), [(ThoughtStep, True), (_Late, False)])
def test_an_export_that_is_a_word_late_is_red(
    task: Thoughts, tmp_path: Path, step: Any, sound: bool
) -> None:
    (part,) = _ONE.parts(task)
    model = fold(task.model)
    report = compare(PartGraph(replace(part, step=step), model, tmp_path), model)
    holds = {finding.name: finding.holds for finding in report}
    assert holds.pop("encoder, structure") is holds.pop("encoder, rounding") is sound
    assert len(holds) == 2
    assert all(holds.values())
