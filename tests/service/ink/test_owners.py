"""Which letter each point of a line's ink is of; most of it is tested in test_marks.py."""

import numpy as np

from service.ink.owners import owners


def test_a_word_of_one_letter_keeps_its_points_though_the_gap_before_it_is_wider() -> None:
    x = np.concatenate([np.linspace(0, 5, 5), np.linspace(40, 45, 5), np.linspace(50, 55, 5)])
    points = np.column_stack([x, np.zeros(15), np.arange(15) % 5 == 4])
    whose = np.repeat([0, 2, 4], 5)
    assert owners("a b c", whose, points).tolist() == whose.tolist()


def test_ink_that_goes_on_across_a_space_is_of_the_letter_behind_it() -> None:
    """The pen is not lifted between the words: the window alone says where one ends."""
    points = np.column_stack([np.linspace(0, 50, 15), np.zeros(15), np.zeros(15)])
    assert owners("a b", np.repeat([0, 1, 2], 5), points).tolist() == [0] * 8 + [2] * 7
