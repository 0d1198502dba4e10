"""Bytes become text without splitting a character or letting a stop string through."""

import random
from collections.abc import Iterable

import pytest

from service.text.stream import TextStream

# Characters of 1 to 4 bytes, and what UTF-8 never contains: a lone continuation, an overlong form,
# half a surrogate pair, beyond the last plane, a character cut short by another.
_PARTS = [
    *(c.encode() for c in "aé€🦉\n"),
    *(
        b"\x80",
        b"\xff",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
        b"\xf0\x9f",
    ),
]


def _read(stream: TextStream, chunks: Iterable[bytes]) -> str:
    """All text that comes out, stopping where the stream stops."""
    text = ""
    for chunk in chunks:
        text += stream.push(chunk)[0]
        if stream.stopped:
            break
    return text + stream.flush()


def _messy(seed: int) -> bytes:
    return b"".join(random.Random(seed).choices(_PARTS, k=8))


@pytest.mark.parametrize("seed", range(40))
def test_text_is_the_same_however_the_bytes_are_cut(seed: int) -> None:
    data = _messy(seed)
    whole = data.decode("utf-8", "replace")
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            chunks = data[:first], data[first:second], data[second:]
            assert _read(TextStream(()), chunks) == whole
    assert _read(TextStream(()), (data[i : i + 1] for i in range(len(data)))) == whole


def test_a_character_comes_out_with_its_last_byte() -> None:
    stream = TextStream(())
    owl = "🦉".encode()
    assert [stream.push(owl[i : i + 1])[0] for i in range(4)] == ["", "", "", "🦉"]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_undecided_and_what_came_out_are_all_bytes(seed: int) -> None:
    data = "".join(random.Random(seed).choices("aé€🦉st", k=10)).encode()
    stream, text = TextStream((b"st", "é€".encode())), ""
    for i in range(len(data)):
        text += stream.push(data[i : i + 1])[0]
        if stream.stopped:
            break
        assert text.encode() + stream.undecided == data[: i + 1]


@pytest.mark.parametrize("stop", ["END", "é€", "🦉", "ENEND", "D", "x END y"])
def test_a_stop_string_is_found_across_every_cut(stop: str) -> None:
    before, data = "aé ENE", f"aé ENE{stop}after".encode()
    expected = (before + stop).split(stop)[0]
    for cut in range(len(data) + 1):
        assert _read(TextStream((stop.encode(),)), (data[:cut], data[cut:])) == expected
    assert _read(TextStream((stop.encode(),)), (data[i : i + 1] for i in range(len(data)))) == (
        expected
    )


def test_bytes_after_the_stop_string_are_not_looked_at() -> None:
    stream = TextStream((b"END",))
    stream.push(b"abE")
    text, looked_at = stream.push(b"NDrest")
    assert (text, looked_at, stream.undecided) == ("", 2, b"END")


@pytest.mark.parametrize("stops", [("abc", "b"), ("b", "abc")])
def test_the_stop_string_complete_first_wins(stops: tuple[str, ...]) -> None:
    encoded = tuple(stop.encode() for stop in stops)
    for cut in range(6):
        assert _read(TextStream(encoded), (b"xabcy"[:cut], b"xabcy"[cut:])) == "xa"


@pytest.mark.parametrize("stops", [("abc", "bc"), ("bc", "abc")])
def test_of_stop_strings_complete_together_the_longest_wins(stops: tuple[str, ...]) -> None:
    encoded = tuple(stop.encode() for stop in stops)
    for cut in range(6):
        assert _read(TextStream(encoded), (b"xabcy"[:cut], b"xabcy"[cut:])) == "x"


def test_a_stop_string_that_overlaps_its_own_beginning_is_found() -> None:
    data = b"aababaababb"  # "ababb" begins anew inside itself
    for cut in range(len(data) + 1):
        assert _read(TextStream((b"ababb",)), (data[:cut], data[cut:])) == "aababa"


def test_flush_gives_a_beginning_that_never_became_a_stop_string() -> None:
    stream = TextStream((b"END",))
    assert stream.push(b"the EN")[0] == "the "
    assert stream.undecided == b"EN"
    assert stream.flush() == "EN"
    assert stream.undecided == b""


def test_flush_shows_an_unfinished_character_as_a_replacement() -> None:
    stream = TextStream(())
    assert stream.push(b"a\xe2\x82")[0] == "a"
    assert stream.flush() == "\ufffd"


def test_what_is_undecided_is_in_the_order_it_came_in_after_half_a_character_too() -> None:
    stream = TextStream((b"END",))
    assert stream.push(b"a\xe2\x82EN")[0] == "a"
    assert stream.undecided == b"\xe2\x82EN"


def test_an_unfinished_character_before_a_stop_string_is_text_not_stop() -> None:
    stream = TextStream((b"END",))
    assert stream.push(b"a\xe2\x82END")[0] == "a\ufffd"
    assert stream.undecided == b"END"
