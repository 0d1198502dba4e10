"""The task `thoughts`: sentences, loss and probes by hand, and an export that is found out."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from torch.nn import functional as F

from lab import experiment
from lab.export import compare
from lab.graphs import PartGraph
from lab.plan import read_plans
from lab.tasks.thoughts import data, probes
from lab.tasks.thoughts import task as thoughts
from lab.tasks.thoughts.data import TEXTS, _stories, read_stories, sentences_of
from lab.tasks.thoughts.model import Decoder, ThoughtsConfig, ThoughtStep
from lab.tasks.thoughts.probe_data import CLASSED, RELATED, Classed, Related, read_probes
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
    assert Vocabulary([["b", "a"]], size=9).numbers(["a", "b"]) == [2, 3]  # by alphabet


def test_sentences_end_where_they_do() -> None:
    text = 'CHAPTER I\n\n"Well, Mr. Bolkónski?" said\nhe. He left.\n\n“Go!” She went... Then\n'
    text += "\nMrs. Ada met Dr. Bo in St. Ives. “Stay!” he said.\n"
    assert sentences_of(text) == [
        ["well", ",", "mr", ".", "bolkónski", "?", "said", "he", "."],
        ["he", "left", "."],
        ["go", "!"],
        ["she", "went", ".", ".", "."],
        ["mrs", ".", "ada", "met", "dr", ".", "bo", "in", "st", ".", "ives", "."],
        ["stay", "!", "he", "said", "."],
    ]


def test_what_stands_around_a_novel_and_who_speaks_in_a_play_is_no_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    novel, plays = (tmp_path / name for name in TEXTS)
    for text in (novel, plays):
        text.parent.mkdir()
    begins, ends = "BOOK ONE: 1805\n\nCHAPTER I", "End of the Project Gutenberg EBook."
    novel.write_text(f"It is free.\n\n{begins}\n\nHe left.\n\n{ends}\n\nNo warranty.\n", "utf-8")
    plays.write_text("First Citizen:\nSpeak.\n\nAll:\nWe\nspeak.\n", "utf-8")
    monkeypatch.setattr(data, "_stories", lambda name, texts, *_: texts)
    assert read_stories(tmp_path, 100, 0.1) == [  # type: ignore[comparison-overlap]
        [["he", "left", "."]], [["speak", "."], ["we", "speak", "."]]
    ]  # fmt: skip
    novel.write_text("He left.", "utf-8")
    with pytest.raises(ValueError, match="has no first chapter"):
        read_stories(tmp_path, 100, 0.1)


def test_parts_share_no_sentence_and_neighbours_are_of_the_same_part() -> None:
    stories = read_stories(None, 100, 0.1)
    parts = [{p + move for p in part for move in (-1, 0, 1)}
             for part in (stories.train, stories.validation, stories.test)]  # fmt: skip
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(stories.sentences)


def test_words_of_validation_and_test_alone_have_no_numbers() -> None:
    text = [[f"w{n // 4}"] for n in range(40)]
    stories = _stories("numbered", [text], 100, 0.1)
    assert stories.vocabulary.size == 2 + 8
    found = [stories.sentences[place] for place in (*stories.validation, *stories.test)]
    assert found == [[UNKNOWN]] * 4


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


def test_a_decoder_begins_at_the_vector_of_its_sentence() -> None:
    torch.manual_seed(0)
    decoder = Decoder(ThoughtsConfig(units=4, embedding=3))
    thought, before = torch.rand(2, 4), torch.rand(2, 2, 3)
    with torch.no_grad():
        h, state = decoder.stack.step(before[0], (thought, *decoder.stack.initial_state(2)[1:]))
        after, _ = decoder.stack.step(before[1], state)
        assert torch.allclose(decoder(thought, before), torch.stack([h, after]), atol=1e-6)


def test_words_that_are_not_predicted_are_unknown(task: Thoughts) -> None:
    known = task.model.readout.out_features
    assert task.model.known(torch.tensor([0, 5, known])).tolist() == [0, 5, UNKNOWN]


def test_vectors_come_back_in_the_order_of_the_sentences(task: Thoughts) -> None:
    sentences = task.material.probes.classed[0].sentences[:9]
    encoder = Encoder(task.model, task.stories)
    found = encoder(sentences)
    for words, vector in zip(sentences, found, strict=True):
        assert np.allclose(encoder([words])[0], vector, atol=1e-6)
        numbers = task.stories.vocabulary.numbers(words)
        own = task.model.encoder.last(torch.tensor(numbers).unsqueeze(1)).detach()
        assert np.allclose(own[0], vector, atol=1e-6)


def test_nats_are_of_evenly_spaced_sentences_and_the_tests_of_the_test(
    task: Thoughts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thoughts, "_VALIDATED", 4)
    places = task.stories.train[:11]
    with torch.no_grad():
        loss = task.model.loss(*task.around(places[::2][:4])).item()
    assert task.nats(places) == pytest.approx(loss, rel=1e-5)
    monkeypatch.setattr(thoughts, "_AT_ONCE", 3)  # a part of three sentences and one of one
    parts = places[::2][:3], places[::2][3:4]
    with torch.no_grad():
        nats = [task.model.loss(*task.around(part)).item() for part in parts]
    assert task.nats(places) == pytest.approx((3 * nats[0] + nats[1]) / 4, rel=1e-5)
    asked: list[Any] = []
    monkeypatch.setattr(thoughts, "_PROBED", 9)  # fewer than there are
    material = replace(task.material)  # which has computed nothing yet
    monkeypatch.setattr(task, "material", material)
    monkeypatch.setattr(thoughts, "probe", lambda *given: asked.append(given) or {})
    assert task.test() == {"nats": task.nats(task.stories.test)}
    task.validate()
    # The test has all of each set in ten folds, a checkpoint some of it in two.
    assert [(given[0], *given[2:]) for given in asked] == [
        (material.probes,), (material.sample, 2),
    ]  # fmt: skip
    asked.clear()
    assert material.sample != material.probes
    assert material.baselines.keys() == {"bag of words", "random encoder"}
    assert [(given[0], *given[2:]) for given in asked] == [(material.probes,)] * 2


def test_what_a_set_tests_is_not_learned_and_a_head_line_is_no_pair(tmp_path: Path) -> None:
    for folder, files in (("sentclass", chain(*CLASSED.values())), ("sick", RELATED)):
        (tmp_path / folder).mkdir()
        for file in files:
            (tmp_path / folder / file).write_text("0 so it is\n1 good\n" * 2)
    (tmp_path / "sentclass" / "TREC.test.all").write_text("1 Good\n0 other\n")
    pairs = "id\ta\tb\tscore\tjudgment\n{0}\tone\ttwo\t{0}.5\tNEUTRAL\n"
    for number, file in enumerate(RELATED, 1):
        (tmp_path / "sick" / file).write_text(pairs.format(number))
    found = read_probes(tmp_path)
    trec = found.classed[-1]
    assert trec.sentences == [["so", "it", "is"]] * 2 + [["good"], ["other"]]
    assert (trec.classes, trec.test) == ([0, 0, 1, 0], 2)
    assert (len(found.classed[0].classes), found.classed[0].test) == (4, None)
    assert found.related == Related([(["one"], ["two"])] * 2, [1.5, 2.5], 1)


def test_a_sentence_that_is_there_twice_is_in_one_fold() -> None:
    one = Classed("some", [[str(i % 30)] for i in range(60)], [0] * 60)
    folds = held_out(one, 10)
    assert sum(fold.astype(int) for fold in folds).tolist() == [1] * 60  # type: ignore[union-attr]
    assert all((fold[:30] == fold[30:]).all() for fold in folds)
    order = [str(i) for i in sorted(range(30), key=str)]  # which says nothing of a fold
    assert [int(text) for text in order if folds[0][int(text)]] != [int(t) for t in order[::10]]
    assert [f.tolist() for f in held_out(Classed("some", [["a"]] * 3, [0] * 3, 2), 10)] == [
        [False, False, True]
    ]


def test_a_sentence_is_in_the_same_fold_wherever_it_stands() -> None:
    """Folds by the order of a set would be others in every process."""
    sentences = [[f"word{n}"] for n in range(500)]
    there, back = (
        held_out(Classed("some", some, [0] * 500), 10) for some in (sentences, sentences[::-1])
    )
    assert [fold.tolist() for fold in there] == [fold[::-1].tolist() for fold in back]


def test_the_accuracy_of_a_split_is_that_of_one_logistic_regression() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 3))
    classes = (x[:, 0] + random.normal(size=80) > 0).astype(int)
    one = Classed("some", [[str(i)] for i in range(80)], classes.tolist(), 50)
    x[:, 1:] *= 50
    scaled = (x - x[:50].mean(0)) / x[:50].std(0)
    model = LogisticRegression(C=0.03, tol=1e-6).fit(scaled[:50], classes[:50])
    assert accuracy(one, x) == pytest.approx(100 * model.score(scaled[50:], classes[50:]))
    assert np.isnan(accuracy(one, x * np.nan))


def test_a_score_between_two_is_shared_between_them() -> None:
    nothing = np.zeros((4, 1))  # features that tell nothing: the answer is the mean
    scores = np.array([1.0, 2.5, 4.75, 5.0])
    assert predicted(nothing, scores, nothing)[0] == pytest.approx(scores.mean(), abs=0.01)


def test_what_scores_are_told_for_is_scaled_as_what_was_learned_from() -> None:
    """A pair's score does not hang on which others are told beside it."""
    chance = np.random.default_rng(0)
    learned = chance.normal(size=(60, 3))
    scores = np.clip(3 + learned[:, 0], 1, 5)
    others = 5 + 2 * chance.normal(size=(20, 3))
    together = predicted(learned, scores, others)
    assert np.allclose(predicted(learned, scores, others[:4]), together[:4])


def test_the_encoder_before_training_is_the_same_whatever_was_drawn_before(task: Thoughts) -> None:
    found = []
    for seed in (1, 2):
        material = replace(task.material)  # which has computed nothing yet
        torch.manual_seed(seed)
        state = torch.get_rng_state()
        found.append(material.baselines["random encoder"])
        assert torch.equal(torch.get_rng_state(), state)
    assert found[0] == found[1]


def test_facts_are_of_the_stories_and_of_what_has_learned_nothing(task: Thoughts) -> None:
    material = replace(task.material)
    material.baselines = {"bag of words": {"SICK r": 0.12345}}
    assert _ONE.facts(material) == task.stories.facts() | {
        "probes": {"bag of words": {"SICK r": 0.123}}
    }


def test_relatedness_is_told_of_what_pairs_share() -> None:
    drawn = read_probes(None).related
    figures = relatedness(drawn, bag_of_words)
    assert figures["SICK r"] > 0.8
    shuffled = np.random.default_rng(0).permutation(drawn.scores).tolist()
    unrelated = relatedness(Related(drawn.pairs, shuffled, drawn.test), bag_of_words)
    assert unrelated["SICK r"] < 0.5
    assert unrelated["SICK MSE"] > figures["SICK MSE"]


def test_relatedness_is_pearsons_and_spearmans_and_the_squared_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, truth = [1.0, 2.0, 9.0], [1.0, 3.0, 4.0]
    monkeypatch.setattr(probes, "predicted", lambda *_: np.array(told))
    related = Related([(["a"], ["b"])] * 4, [5.0, *truth], 1)
    found = relatedness(related, lambda sentences: np.zeros((len(sentences), 1)))
    assert found["SICK r"] == pytest.approx(np.corrcoef(told, truth)[0, 1])
    assert found["SICK rho"] == pytest.approx(1)
    assert found["SICK MSE"] == pytest.approx((0 + 1 + 25) / 3)


def test_a_pair_has_the_same_features_dense_or_sparse() -> None:
    u, v = np.array([[1.0, 0.0, 2.0]]), np.array([[0.0, 3.0, 1.0]])
    expected = [[1, 3, 1, 0, 0, 2]]
    assert probes._joined(u, v).tolist() == expected
    assert probes._joined(csr_array(u), csr_array(v)).toarray().tolist() == expected


def test_a_sample_keeps_the_test_apart() -> None:
    one = Classed("some", [[str(i)] for i in range(50)], list(range(50)), 30)
    some = one.sample(10)
    assert some.test == 10
    assert all(c < 30 for c in some.classes[:10])
    assert all(c >= 30 for c in some.classes[10:])
    assert [[str(c)] for c in some.classes] == some.sentences
    assert some.classes[:10] != list(range(10))  # the first of a set may be of one class
    pairs = Related([(["a"], [str(i)]) for i in range(12)], list(range(12)), 4)
    few = pairs.sample(6)  # there are but four to learn from
    assert few.test == 4
    assert few.scores[:4] == [0, 1, 2, 3]
    assert [[str(score)] for score in few.scores] == [b for _, b in few.pairs]
    assert len(few.scores) == 4 + 6


class _Late(ThoughtStep):
    """The planted defect: the sentence before its last word."""

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        *after, _ = super().forward(*inputs)
        return *after, inputs[0].clone()


@pytest.mark.long
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
