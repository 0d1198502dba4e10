"""From bytes to text on the site: what is final, and where each byte lies, as in the service."""

import base64
import itertools
from typing import Any

import numpy as np

from service.text.offsets import TextOffsets
from service.text.stream import TextStream
from tests.site.conftest import Ask

_CASES = 200
# Characters of every length, and what is none: too long, surrogates, past the end.
_PIECES = [
    b"a",
    "é€𝄞\ufeff".encode(),
    b"\xe0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90",
    b"\xf0\x9d",
    b"\xff",
]
# Where first bytes and second ones begin and end to be such, and their neighbours; some go on.
_EDGES = [
    bytes(each)
    for first, second in itertools.product(
        b"\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5", b"\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc2"
    )
    for each in ([first, second], [first, second, 0x80])
]


def _portions(random: np.random.Generator) -> list[bytes]:
    data = b"".join(_PIECES[i] for i in random.integers(0, len(_PIECES), 12))
    data += b"".join(_EDGES[i] for i in random.integers(0, len(_EDGES), 6))
    cuts = sorted(random.integers(0, len(data), 9).tolist())
    ends = zip([0, *cuts], [*cuts, len(data)], strict=True)
    return [data[start:end] for start, end in ends]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_text_and_places_are_the_same_however_bytes_are_cut(ask: Ask) -> None:
    random = np.random.default_rng(8)
    cases: list[dict[str, Any]] = []
    expected = []
    for number in range(_CASES):
        portions, undecided = _portions(random), b"\xf0\x9d"[: number % 3]
        between = number % 2 == 0
        stream, offsets = TextStream(()), TextOffsets(undecided, between=between)
        told = []
        for portion in portions:
            text, _ = stream.push(portion)
            places = [offsets.of(byte) for byte in portion]
            held = _encoded(stream.undecided)
            told.append({"text": text, "undecided": held, "offsets": places})
        expected.append({"told": told, "rest": stream.flush()})
        cases.append({
            "undecided": _encoded(undecided),
            "portions": [_encoded(portion) for portion in portions],
            "between": between,
        })  # fmt: skip
    assert ask("utf8", cases) == expected
