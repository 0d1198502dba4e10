"""The text on the best path: repeats are one, blanks are none, wherever the logits are cut."""

import numpy as np
import pytest

from contract.alphabets import ALPHABET, encode
from contract.reader import BLANK, SYMBOLS, Read, best_path

_SURE = 9.0


def _logits(path: list[int]) -> np.ndarray:
    logits = np.random.default_rng(0).normal(0, 0.5, (len(path), SYMBOLS)).astype(np.float32)
    logits[np.arange(len(path)), path] = _SURE
    return logits


def _text(read: list[Read]) -> str:
    return "".join(r.character for r in read)


def test_repeats_are_one_and_blanks_are_none() -> None:
    a, b = encode("ab")
    path = [BLANK, a, a, BLANK, a, b, b, BLANK, BLANK]
    read = best_path(_logits(path))
    assert _text(read) == "aab"
    assert [r.step for r in read] == [1, 4, 5]


def test_there_is_a_symbol_for_every_character_and_one_for_nothing() -> None:
    path = [symbol for character in ALPHABET for symbol in (*encode(character), BLANK)]
    assert _text(best_path(_logits(path))) == ALPHABET
    assert len(ALPHABET) + 1 == SYMBOLS


@pytest.mark.parametrize("cut", range(9))
def test_cut_anywhere_it_reads_the_same(cut: int) -> None:
    a, b = encode("ab")
    path = [BLANK, a, a, BLANK, a, b, b, BLANK]
    logits = _logits(path)
    before = path[cut - 1] if cut else BLANK
    parts = best_path(logits[:cut]), best_path(logits[cut:], before)
    assert _text([*parts[0], *parts[1]]) == "aab"


def test_confidence_is_the_highest_probability_of_a_run() -> None:
    (a,) = encode("a")
    logits = np.zeros((3, SYMBOLS))
    logits[:, a] = [2.0, 4.0, 3.0]
    (read,) = best_path(logits)
    assert read.confidence == pytest.approx(np.exp(4) / (np.exp(4) + SYMBOLS - 1))


def test_nothing_is_read_in_nothing() -> None:
    assert best_path(np.zeros((0, SYMBOLS))) == []
