"""Stories with questions: the bAbI tasks from their archive, and a stand-in that is drawn.

A later question of a story sees all lines before it; the answer is one class, commas included.
Shapes: N questions, U words of a story, Q of a question.
"""

import hashlib
import math
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lab.classify import Divided, Examples
from lab.sequences import padded_rows
from lab.source import require_parts, required
from lab.tasks.reader.drawn import drawn_stories
from training.files import unpacking

ARCHIVE = "babi_v1-2_en10k.tar.xz"
QUESTION_WORDS = 12  # the longest of the 20 tasks has 11
_TASKS = range(1, 21)
# The archive lacks the training file of task 3; its first 1,000 questions and 1,000 others of it.
_INSTEAD_OF_3 = ("en/qa3_three-supporting-facts_train.txt", "en-valid-10k_qa3_valid.txt")


class Question(NamedTuple):
    """The words before a question, its own, its answer, and the number of its story."""

    story: list[str]
    question: list[str]
    answer: str
    number: int


@dataclass(frozen=True)
class Stories(Divided):
    """Questions as `(N, U + Q)` int64: a story's last U words, then those of the question, each
    padded with 0. Tests are in order of length; `test_tasks (N,)` says of which task each is.

    `words` and `answers` are what the numbers mean; word 0 is padding. bAbI's own test sets are
    kept as they are, though some of their questions stand in training: `repeated` of each task.
    """

    words: tuple[str, ...]
    answers: tuple[str, ...]
    test_tasks: Tensor
    shortened: dict[int, float]
    repeated: dict[int, int]

    def facts(self) -> dict[str, Any]:
        """For the results; `shortened`: what part of a task's test stories lost their beginning;
        `repeated`: how many of its test questions stand in training, word for word."""
        sizes = {"words": len(self.words), "answers": len(self.answers)}
        cut = {f"qa{task}": share for task, share in self.shortened.items() if share}
        again = {f"qa{task}": count for task, count in self.repeated.items() if count}
        return super().facts() | sizes | {"shortened": cut, "repeated": again}


def read_stories(folder: Path | None, validation_fraction: float, longest: int) -> Stories:
    """Training and test questions of every task, `longest` words of each story. The last stories
    of a task's training are to validate. Raises `ValueError` where the archive is missing."""
    if folder is None:
        train, test = drawn_stories(0, 200), drawn_stories(1, 60)
        digest = hashlib.sha256(repr((train, test)).encode()).hexdigest()
        return _stories("drawn stories", digest, train, test, validation_fraction, longest)
    archive = required(folder / ARCHIVE)
    with unpacking(archive), tarfile.open(archive) as files:
        contents = {m.name: files.extractfile(m) for m in files if m.isfile()}
        texts = {n: f.read().decode("ascii") for n, f in contents.items() if f is not None}
    train = {task: _text(texts, task, "train") for task in _TASKS}
    test = {task: _text(texts, task, "test") for task in _TASKS}
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return _stories("bAbI 10k", digest, train, test, validation_fraction, longest)


def parse(text: str) -> list[Question]:
    """The questions of a file: lines `ID text` or `ID question<TAB>answer<TAB>lines`; ID 1 begins a
    story."""
    questions: list[Question] = []
    story: list[str] = []
    number = -1
    for line in text.splitlines():
        place, _, rest = line.partition(" ")
        if place == "1":
            story, number = [], number + 1
        sentence, *answered = rest.split("\t")
        words = sentence.lower().replace(".", "").replace("?", "").split()
        if answered:
            questions.append(Question(story, words, answered[0], number))
        else:
            story = [*story, *words]
    return questions


def _text(texts: Mapping[str, str], task: int, part: str) -> str:
    if task == 3 and part == "train":
        return "".join(texts[name] for name in _INSTEAD_OF_3)
    start, end = f"en-10k/qa{task}_", f"_{part}.txt"
    return next(t for name, t in texts.items() if name.startswith(start) and name.endswith(end))


def _stories(
    name: str,
    digest: str,
    train: Mapping[int, str],
    test: Mapping[int, str],
    fraction: float,
    longest: int,
) -> Stories:
    learned, judged = [], []
    for text in train.values():
        questions = parse(text)
        last = questions[round(len(questions) * (1 - fraction)) :]
        first = last[0].number if last else math.inf
        learned += [q for q in questions if q.number < first]
        judged += [q for q in questions if q.number >= first]
    require_parts(fraction, learned, judged)
    parsed = {task: parse(text) for task, text in test.items()}
    asked = [(task, q) for task, questions in parsed.items() for q in questions]
    asked.sort(key=lambda pair: min(len(pair[1].story), longest))
    judged.sort(key=lambda q: min(len(q.story), longest))
    held_out = [q for _, q in asked]
    everything = [*learned, *judged, *held_out]
    words = ("", *sorted({w for q in everything for w in (*q.story, *q.question)}))
    answers = tuple(sorted({q.answer for q in everything}))
    shortened = {
        task: sum(len(q.story) > longest for q in questions) / len(questions)
        for task, questions in parsed.items()
    }
    return Stories(
        name=name,
        sha256=digest,
        words=words,
        answers=answers,
        train=_numbers(learned, words, answers, longest),
        validation=_numbers(judged, words, answers, longest),
        test=_numbers(held_out, words, answers, longest),
        test_tasks=torch.tensor([task for task, _ in asked]),
        shortened=shortened,
        repeated=_repeated(learned, asked, longest),
    )


def _repeated(
    learned: Sequence[Question], asked: Sequence[tuple[int, Question]], longest: int
) -> dict[int, int]:
    """How many test questions of each task stand in training: the same story as it is read,
    question and answer."""

    def read(q: Question) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        return tuple(q.story[-longest:]), tuple(q.question), q.answer

    rows = [(task, read(question)) for task, question in asked]
    known = {row for _, row in rows}.intersection(map(read, learned))
    found = Counter(task for task, row in rows if row in known)
    return {task: found[task] for task in sorted({task for task, _ in rows})}


def _numbers(
    questions: Sequence[Question], words: Sequence[str], answers: Sequence[str], longest: int
) -> Examples:
    number = {word: n for n, word in enumerate(words)}
    place = {answer: n for n, answer in enumerate(answers)}
    stories = ([number[w] for w in q.story[-longest:]] for q in questions)
    asked = ([number[w] for w in q.question] for q in questions)
    rows = torch.cat([padded_rows(stories, longest), padded_rows(asked, QUESTION_WORDS)], 1)
    return Examples(rows, torch.tensor([place[q.answer] for q in questions]))
