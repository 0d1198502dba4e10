"""Numbers on the site: rounded and halved as Python and numpy do."""

import numpy as np

from tests.site.conftest import Ask

_CASES = 200


def test_halves_go_to_the_even_number(ask: Ask) -> None:
    cases = [n / 2 for n in range(-_CASES // 2, _CASES // 2)]
    assert ask("round", cases) == [round(case) for case in cases]


def test_the_median_is_numpys(ask: Ask) -> None:
    random = np.random.default_rng(6)
    cases = [random.normal(size=random.integers(1, 12)).tolist() for _ in range(_CASES)]
    assert ask("median", cases) == [float(np.median(case)) for case in cases]
