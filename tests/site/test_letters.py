"""What word processors type, folded on the site: as in the service."""

import unicodedata

import numpy as np

from contract.alphabets import ALPHABET
from service.ink.letters import MARKS, bases, fold
from tests.site.conftest import Ask

_CASES = 200
# Private use and what this Unicode does not know apart, every character of the first plane.
_CHARACTERS = [
    c for c in map(chr, range(0x10000)) if unicodedata.category(c) not in ("Cn", "Co", "Cs")
]


def test_every_character_is_folded_as_the_service_does(ask: Ask) -> None:
    expected = [fold(character) for character in _CHARACTERS]
    changed = [c for c, plain in zip(_CHARACTERS, expected, strict=True) if c != plain]
    assert {"\u2019", "\u2014", "\u00a0", "\ufb03", "\uff21", "\u00df"} <= set(changed)
    assert ask("fold", _CHARACTERS) == expected


def test_what_cannot_be_written_is_what_the_service_refuses(ask: Ask) -> None:
    writable = {*ALPHABET, "\n"}
    for marks in (sorted(MARKS), []):
        case = {"texts": _CHARACTERS, "characters": ALPHABET, "marks": marks}
        (found,) = ask("unknown", [case])
        assert found.count([]) > 150
        for character, unknown in zip(_CHARACTERS, found, strict=True):
            plain = fold(character)
            base = bases(plain) if marks else plain
            refused = [c for c, b in zip(plain, base, strict=True) if b not in writable]
            assert unknown == list(dict.fromkeys(refused)), character


def test_texts_are_folded_as_the_service_does(ask: Ask) -> None:
    random = np.random.default_rng(13)
    pieces = [
        "e\u0301",
        "\u201cit\u2019s\u201d",
        " \u2014 ",
        "\r\n",
        "\n",
        "\r",
        "\t",
        "a\u0327\u0302",
        "\u2026",
        "2\u00bd",
        "\uff13",
        "\u215e",
        "2\u2064\u00bd",
        "\u00bd\u20642",
    ]
    cases = ["".join(random.choice(pieces, 6)) for _ in range(_CASES)]
    assert ask("fold", cases) == [fold(case) for case in cases]
