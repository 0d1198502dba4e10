"""Reader: bAbI's files, the attention, the three graphs together, and a defect in one."""

import io
import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch import Tensor

from contract.manifest import sha256
from lab import experiment
from lab.classify import Examples
from lab.export import compare
from lab.graphs import PartGraph
from lab.plan import read_plans
from lab.tasks.reader import data, picture
from lab.tasks.reader.data import ARCHIVE, Stories, parse, read_stories
from lab.tasks.reader.experiment import Reading
from lab.tasks.reader.model import AttentiveReader, Meeting, ReaderConfig
from lab.tasks.reader.parts import AnswerStep, parts_of
from models.bidirectional import reverse
from models.cells import Cell

_TEXT = """1 Mary took the milk.
2 John went home.
3 What is Mary carrying? \tmilk,apple\t1
4 Mary left.
5 Where is John?\thome\t2
1 Sandra slept.
2 Who slept? \tSandra\t1
"""


def test_later_questions_see_all_lines_and_answers_with_commas_are_one() -> None:
    first, second, third = parse(_TEXT)
    assert first.story == ["mary", "took", "the", "milk", "john", "went", "home"]
    assert first.question == ["what", "is", "mary", "carrying"]
    assert first.answer == "milk,apple"
    assert second.story == [*first.story, "mary", "left"]
    assert (second.number, second.answer) == (0, "home")
    assert (third.story, third.number) == (["sandra", "slept"], 1)


def test_a_story_of_many_lines_is_one() -> None:
    lines = [f"{n} Mary took {n}.\n" for n in range(1, 13)]
    (asked,) = parse("".join(lines) + "13 Who took? \tMary\t1\n")
    assert (len(asked.story), asked.number) == (36, 0)


def test_a_story_keeps_its_last_words_and_validation_has_stories_of_its_own(
    tmp_path: Path,
) -> None:
    long, short = read_stories(None, 0.1, 16), read_stories(None, 0.1, 10)
    assert not any(long.shortened.values())
    assert all(share > 0 for share in short.shortened.values())
    assert not any(read_stories(None, 0.1, 15).shortened.values())  # the longest has as many
    assert long.words == short.words
    rows = long.test.inputs.tolist()
    last = [[word for word in row[:16] if word][-10:] for row in rows]
    expected = [
        [*kept, *[0] * (10 - len(kept)), *row[16:]] for kept, row in zip(last, rows, strict=True)
    ]
    assert sorted(short.test.inputs.tolist()) == sorted(expected)
    # Some 10% of the 400 questions of each of two tasks, whole stories of them.
    assert 70 <= len(long.validation.classes) <= 90
    assert len(long.train.classes) + len(long.validation.classes) == 800
    with pytest.raises(ValueError, match="--quick needs no data"):
        read_stories(tmp_path, 0.1, 16)


def _archive(folder: Path) -> None:
    """Four stories of each task to learn and one to test, of which the answer says which it is."""
    told = {f"en-10k/qa{task}_it_{part}.txt": f"{task}-{part}" for task in range(20, 0, -1)
            for part in ("train", "test")}  # fmt: skip
    del told["en-10k/qa3_it_train.txt"]
    half = {"en/qa3_three-supporting-facts_train.txt": "3-first",
            "en-valid-10k_qa3_valid.txt": "3-other"}  # fmt: skip
    with tarfile.open(folder / ARCHIVE, "w:xz") as files:
        for name, answer in (told | half).items():
            stories = 1 if "test" in answer else 2 if name in half else 4
            content = f"1 Mary left.\n2 Who left? \t{answer}\t1\n".encode() * stories
            info = tarfile.TarInfo(name)
            info.size = len(content)
            files.addfile(info, io.BytesIO(content))


def test_each_task_is_read_from_its_own_files(tmp_path: Path) -> None:
    """The one that the archive lacks, from two others."""
    _archive(tmp_path)
    found = read_stories(tmp_path, 0.25, 8)
    asked = [found.answers[number] for number in found.test.classes.tolist()]
    assert asked == [f"{task}-test" for task in found.test_tasks.tolist()]
    learned = Counter(found.answers[number] for number in found.train.classes.tolist())
    judged = Counter(found.answers[number] for number in found.validation.classes.tolist())
    others = {f"{task}-train" for task in range(1, 21) if task != 3}
    assert learned == dict.fromkeys(others, 3) | {"3-first": 2, "3-other": 1}
    assert judged == dict.fromkeys(others | {"3-other"}, 1)
    # Numbers of words and of answers are the same in every run of it.
    assert list(found.words) == ["", *sorted(found.words[1:])]
    assert list(found.answers) == sorted(found.answers)
    assert found.sha256 == sha256(tmp_path / ARCHIVE)


def test_test_questions_that_stand_in_training_are_counted_and_kept() -> None:
    found = read_stories(None, 0.1, 16)

    def rows(examples: Examples) -> list[tuple[int, ...]]:
        both = torch.cat([examples.inputs, examples.classes.unsqueeze(1)], 1)
        return [tuple(row) for row in both.tolist()]

    learned, asked = set(rows(found.train)), rows(found.test)
    expected = {1: 0, 6: 0}
    for task, row in zip(found.test_tasks.tolist(), asked, strict=True):
        expected[task] += row in learned
    assert found.repeated == expected
    assert 0 < sum(expected.values()) < len(asked) == 2 * 60 * 2
    assert found.facts()["repeated"] == {f"qa{task}": count for task, count in expected.items()}


def _story(*lines: str, answer: str = "a") -> str:
    """A question after every line."""
    told = [f"{line}.\n{2 * n + 2} Who?\t{answer}\t1\n" for n, line in enumerate(lines)]
    return "".join(f"{2 * n + 1} {one}" for n, one in enumerate(told))


def test_a_story_is_learned_or_judged_whole() -> None:
    """Though the share that is held out ends in the midst of it."""
    learned, judged = _story("x", "y", "z"), _story("u", "v", "w")
    found = data._stories("", "", {1: learned + judged}, {1: learned}, 0.2, 9)
    assert (len(found.train.classes), len(found.validation.classes)) == (3, 3)


def test_what_is_repeated_is_all_that_is_read_and_its_answer() -> None:
    train, other = _story("x y z"), _story("one")
    for test, count in (
        (_story("w y z"), 1), (_story("x z z"), 0), (_story("x y z", answer="b"), 0),
    ):  # fmt: skip
        found = data._stories("", "", {1: train + other}, {1: test}, 0.5, 2)
        assert found.repeated == {1: count}


def test_how_many_questions_are_asked_of_a_story_that_is_cut_is_told() -> None:
    """Their share of each task, as its name has it."""
    train, test = _story("x"), {1: _story("x", "y z", "w"), 7: _story("y", "z")}
    found = data._stories("", "", dict.fromkeys(test, train * 2), test, 0.5, 1)
    assert found.shortened == {1: 2 / 3, 7: 1 / 2}
    assert data._stories("", "", {1: train * 2}, {1: test[1]}, 0.5, 3).shortened == {1: 1 / 3}


def _made(norm: str = "layer") -> tuple[AttentiveReader, Tensor]:
    torch.manual_seed(0)
    config = ReaderConfig(norm=norm, words=8, embedding=4, units=5)  # type: ignore[arg-type]
    inputs = torch.randint(1, 20, (3, 8 + 12))
    inputs[0, 5:8] = inputs[2, 2:8] = 0
    inputs[:, 11:] = 0
    return AttentiveReader(config, 20, 6), inputs


def test_the_attention_is_that_of_the_paper() -> None:
    model, inputs = _made("none")
    model = model.double().eval()
    story, question = model.split(inputs)
    y, _ = model.read(model.story, story)
    _, u = model.read(model.question, question)
    head = model.answer
    logits, weights = model.attend(inputs)
    for row, length in enumerate((story > 0).sum(1).tolist()):
        m = torch.tanh(
            y[:length, row] @ head.look.first.weight.T + head.look.second.weight @ u[row]
        )
        s = torch.exp(m @ head.score.weight[0])
        s = s / s.sum()
        r = (s.unsqueeze(1) * y[:length, row]).sum(0)
        g = torch.tanh(head.join.first.weight @ r + head.join.second.weight @ u[row])
        assert torch.allclose(weights[row, :length], s, atol=1e-12)
        assert not weights[row, length:].any()
        assert torch.allclose(logits[row], head.readout(g), atol=1e-12)


@pytest.mark.parametrize(("norm", "normalised"), [("batch", 0), ("batch-everywhere", 4)])
def test_batch_norm_everywhere_is_also_where_story_and_question_meet(
    norm: str, normalised: int
) -> None:
    model, inputs = _made(norm)
    buffers = [name for name, _ in model.answer.named_buffers() if name.endswith("running_mean")]
    assert len(buffers) == normalised
    for lstm in (model.story, model.question):
        cells = [module for module in lstm.modules() if isinstance(module, Cell)]
        assert {(cell.norm, cell.longest_step) for cell in cells} == {("batch", 8)}
    before = model(inputs)[1]
    alone = model(inputs[1:2].repeat(2, 1))[0]
    assert (before - alone).abs().max() > 1e-3  # in training, a row is not by itself


def test_the_test_tells_each_task_and_their_mean() -> None:
    one = experiment.load("reader")
    recipe = read_plans(one, quick=True)[0].full("layer", 1e-2, 0)
    task: Any = one.task(recipe, one.data(recipe, None))
    found = task.test()
    whole = task.measure(Examples(*task.held_out))
    assert found["error"] == pytest.approx(whole["error"])
    assert found["nats"] == pytest.approx(whole["nats"], rel=1e-5)
    assert found["error"] == pytest.approx((found["qa1"] + found["qa6"]) / 2)


def test_tasks_of_few_questions_count_for_less() -> None:
    inputs, classes = torch.tensor([[9.0, 0.0]] * 4), torch.tensor([0, 0, 1, 1])
    examples = Examples(inputs, classes)
    stories = cast(Stories, SimpleNamespace(test_tasks=torch.tensor([1, 1, 1, 6])))
    task = Reading(torch.nn.Identity(), examples, examples, examples, 1, 0, stories=stories)
    found = task.test()
    assert (found["qa1"], found["qa6"]) == (pytest.approx(100 / 3), 100)
    assert found["error"] == pytest.approx(50)
    assert found["nats"] == pytest.approx(task.measure(examples)["nats"])


def test_the_picture_tells_what_the_network_answers(tmp_path: Path, saved: list[Figure]) -> None:
    stories = read_stories(None, 0.1, 16)
    row = int((stories.test_tasks == 1).nonzero()[-1])
    torch.manual_seed(0)
    config = ReaderConfig(words=16, embedding=4, units=5)
    model = AttentiveReader(config, len(stories.words), len(stories.answers)).eval()
    answer = stories.answers[int(model(stories.test.inputs[[row]]).argmax())]
    right = stories.answers[int(stories.test.classes[row])]
    experiment.load("reader").picture(SimpleNamespace(model=model, stories=stories), tmp_path)
    (figure,) = saved
    told = [text.get_text() for text in figure.axes[0].texts]
    assert f"?  {answer}  (right: {right})" in told[-1]
    words = stories.test.inputs[row, :16]
    assert told[:-1] == [stories.words[word] for word in words[words > 0].tolist()]
    assert figure.axes[0].get_title(loc="left") == "task 1"
    (weights,) = model.attend(stories.test.inputs[[row]])[1].detach()
    boxes = [text.get_bbox_patch().get_alpha() for text in figure.axes[0].texts[:-1]]
    assert boxes == pytest.approx((weights / weights.max())[: len(boxes)].tolist())


def test_a_network_that_diverged_has_a_picture_in_which_nothing_is_dark(tmp_path: Path) -> None:
    stories = read_stories(None, 0.1, 16)
    config = ReaderConfig(words=16, embedding=4, units=5)
    model = AttentiveReader(config, len(stories.words), len(stories.answers)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))
    picture.draw(model, stories, tmp_path)
    assert (tmp_path / "reader-attention.png").stat().st_size > 5000


def test_what_is_exported_is_given_stories_from_the_shortest_to_the_longest() -> None:
    """Each is read from its first place on, padding behind it."""
    one = experiment.load("reader")
    recipe = read_plans(one, quick=True)[0].full("layer", 1e-2, 0)
    task: Any = one.task(recipe, one.data(recipe, None))
    given = one.parts(task)[-1].inputs
    lengths = given["real"].sum(1)
    every = (task.held_out.inputs[:, : recipe.model.words] > 0).sum(1)
    assert (lengths.min(), lengths.max()) == (every.min(), every.max())
    model, inputs = _made()
    inputs[:, 6:8] = 0  # no story has as many words as one may have
    *_, answer = parts_of(model, inputs)
    story, real = answer.inputs["story"], answer.inputs["real"]
    assert torch.equal(real, inputs[:, :8] > 0)
    assert torch.equal(story.abs().sum(-1) > 0, real)


@pytest.mark.long
def test_the_three_graphs_together_answer_as_the_model_does(tmp_path: Path) -> None:
    model, inputs = _made()
    model.eval()
    graphs = {part.name: PartGraph(part, model, tmp_path) for part in parts_of(model, inputs)}
    story, question = model.split(inputs)
    lengths, asked = (story > 0).sum(1), (question > 0).sum(1)
    read = graphs["story"].run(graphs["story"].part.inputs)
    back = reverse(torch.from_numpy(read["back"]), lengths).numpy()
    both = np.concatenate([read["ahead"], back], -1).transpose(1, 0, 2)
    both[story.numpy() == 0] = 0
    ends = graphs["question"].run(graphs["question"].part.inputs)
    rows = np.arange(len(inputs))
    u = np.concatenate([ends[n][asked.numpy() - 1, rows] for n in ("ahead", "back")], -1)
    served = graphs["answer"].run(
        {"story": torch.from_numpy(both), "real": story > 0, "question": torch.from_numpy(u)}
    )
    with torch.no_grad():
        expected = model(inputs)
    assert np.abs(served["logits"] - expected.numpy()).max() < 1e-5


class Unmasked(AnswerStep):
    """A defect: padding is looked at."""

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        story, real, question = inputs
        return super().forward(story, real == real, question)


@pytest.mark.long
def test_looking_at_padding_turns_the_report_red(tmp_path: Path) -> None:
    model, inputs = _made()
    *_, part = parts_of(model, inputs)
    graph = PartGraph(replace(part, step=Unmasked), model, tmp_path)
    red = [finding.name for finding in compare(graph, model) if not finding.holds]
    assert red == ["answer, structure", "answer, rounding"]


@pytest.mark.parametrize("norm", ["none", "batch-everywhere"])
def test_where_story_and_question_meet_there_is_one_bias(norm: Any) -> None:
    names = [name for name, _ in Meeting(3, 4, norm).named_parameters()]
    assert [name for name in names if name.endswith("bias")] == ["norm_first.bias"]


def test_an_answer_is_exported_of_what_a_trained_reader_reads() -> None:
    """Whichever mode it was left in: batch norm has other statistics while it trains."""
    torch.manual_seed(0)
    model = AttentiveReader(ReaderConfig(norm="batch", words=4, embedding=3, units=2), 9, 2)
    rows = torch.randint(1, 9, (3, 4 + data.QUESTION_WORDS))
    *_, trained = parts_of(model.train(), rows)
    *_, judged = parts_of(model.eval(), rows)
    for name, given in judged.inputs.items():
        assert torch.equal(given, trained.inputs[name]), name
