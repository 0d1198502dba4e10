"""The symbols of ink, and the limits that go with them."""

import pytest

from contract.alphabets import (
    ALPHABET,
    END,
    LONGEST_LINE,
    LONGEST_TEXT,
    WINDOW_SYMBOLS,
    UnknownCharacter,
    encode,
)


def test_characters_are_numbered_from_one_in_order() -> None:
    assert encode(" !~") == [1, 2, 95]
    assert encode(ALPHABET) == list(range(1, 96))
    assert encode("") == []


def test_no_character_is_the_end() -> None:
    assert END not in encode(ALPHABET)


@pytest.mark.parametrize("character", ["é", "\n", "\t", "\x7f", "\x00", "—", "\ud800"])
def test_a_character_outside_the_alphabet_is_named_with_its_place(character: str) -> None:
    with pytest.raises(UnknownCharacter, match="is not in the alphabet") as refusal:
        encode(f"ab{character}c{character}")
    assert repr(character) in str(refusal.value)
    assert (refusal.value.character, refusal.value.place) == (character, 2)
    assert isinstance(refusal.value, ValueError)


def test_a_smaller_alphabet_numbers_and_refuses_its_own() -> None:
    assert encode("cab", "abc") == [3, 1, 2]
    with pytest.raises(UnknownCharacter, match="'d'"):
        encode("ad", "abc")


def test_the_longest_text_fits_the_window_with_what_stays_in_sight() -> None:
    in_sight, space, end = 1, 1, 1
    assert in_sight + space + LONGEST_TEXT + end <= WINDOW_SYMBOLS
    assert LONGEST_LINE <= LONGEST_TEXT
