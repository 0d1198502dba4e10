"""Which letter each point of a line's ink is of; most of it is tested in test_marks.py."""

import numpy as np

from service.ink.owners import owners


def test_a_word_of_one_letter_keeps_its_points_though_the_gap_before_it_is_wider() -> None:
    x = np.concatenate([np.linspace(0, 5, 5), np.linspace(40, 45, 5), np.linspace(50, 55, 5)])
    points = np.column_stack([x, np.zeros(15), np.arange(15) % 5 == 4])
    whose = np.repeat([0, 2, 4], 5)
    assert owners("a b c", whose, points).tolist() == whose.tolist()
