"""Data of the tasks, parted by a recipe's fraction."""

from collections.abc import Callable
from typing import Any

import pytest

from lab.source import lines_of
from lab.tasks.digits.data import read_digits
from lab.tasks.padding.data import read_sentences
from lab.tasks.ranking.data import read_captioned
from lab.tasks.reader import data as reader
from lab.tasks.thoughts import data as thoughts

_DRAWN: dict[str, Callable[[float], Any]] = {
    "digits": lambda fraction: read_digits(None, fraction),
    "padding": lambda fraction: read_sentences(None, fraction, 8),
    "ranking": lambda fraction: read_captioned(None, "en", fraction),
    "reader": lambda fraction: reader.read_stories(None, fraction, 16),
    "thoughts": lambda fraction: thoughts.read_stories(None, 200, fraction),
}


@pytest.mark.parametrize(
    ("task", "fraction"),
    [
        *((task, fraction) for task in _DRAWN for fraction in (1e-9, 0.999999)),
        # As much is to validate as to test.
        *((task, fraction) for task in ("ranking", "thoughts") for fraction in (0.5, 0.6)),
    ],
)
def test_a_fraction_that_leaves_a_part_empty_is_refused(task: str, fraction: float) -> None:
    with pytest.raises(ValueError, match=f"^data.validation_fraction is {fraction}; nothing is"):
        _DRAWN[task](fraction)


@pytest.mark.parametrize("task", _DRAWN)
def test_a_fraction_that_leaves_something_of_each_part_is_not(task: str) -> None:
    facts = _DRAWN[task](0.4).facts()
    assert min(facts[part] for part in ("train", "validation", "test")) > 0


def test_a_line_of_spaces_is_no_sentence() -> None:
    assert lines_of(b"one\r\n  \n\r\ntwo \n") == ["one", "two "]
