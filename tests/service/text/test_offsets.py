"""`text_offset` says where in the returned text each byte lies, however the text comes and whatever
was undecided before it.

The oracle reads the returned text and tokens alone: it puts all bytes together and decodes them at
once, which no piece of the service does.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from service.text.offsets import TextOffsets
from tests.service.serving import Service, running, settings

_LONG = "Zoë paid €5 for a café crème 🦉🦊 "  # more bytes than a first chunk
_BROKEN = [
    0xE2,
    0x82,
    0x41,
    0xF0,
    0x9F,
    0xA6,
    0xFF,
    0x80,
    0xED,
    0xA0,
    0x80,
    0xED,
    0xBF,
    0x41,
    0xC3,
    0xA9,
    0xC3,
]


Chunks = tuple[int, int]  # so many steps at a time, and before the first byte
_ALONE: Chunks = (1, 1)
_CHUNKS: list[Chunks] = [(3, 2), (32, 8), _ALONE]
_EITHER = [True, False]


@pytest.fixture(scope="module")
def by(artifacts: Path) -> Iterator[Callable[[Chunks], Service]]:
    """Services that run in such chunks."""
    with ExitStack() as stack:

        @cache
        def running_by(chunks: Chunks) -> Service:
            steps, first = chunks
            chosen = settings(artifacts, runner="scan", chunk_steps=steps, first_chunk_steps=first)
            return stack.enter_context(running(chosen))

        yield running_by


@pytest.fixture(params=[*_CHUNKS[:2], pytest.param(_ALONE, marks=pytest.mark.long)], ids=str)
def chunked(request: pytest.FixtureRequest, by: Callable[[Chunks], Service]) -> Service:
    """Any of them."""
    return by(request.param)


def _in_turn(turns: Iterable[tuple[Any, ...]], *axes: Sequence[Any]) -> list[Any]:
    """Every combination of the axes with one of the turns, which begin with chunks, so that any two
    values meet; with all others it takes long."""
    turns, cases = list(turns), []
    usual = [turn for turn in turns if turn[0] != _ALONE]
    for places in itertools.product(*(range(len(axis)) for axis in axes)):
        values = [axis[place] for axis, place in zip(axes, places, strict=True)]
        for turn in turns:
            name = "-".join(map(ascii, (*turn, *values)))
            mine = turn == usual[sum(places) % len(usual)]
            marks = () if mine else pytest.mark.long
            cases.append(pytest.param(*turn, *values, id=name, marks=marks))
    return cases


def _byte(token: str) -> int:
    """The byte that a token's text stands for."""
    if token.startswith("bytes:\\x"):
        return int(token.removeprefix("bytes:\\x"), 16)
    return ord(token)


def _offsets(data: bytes) -> list[int]:
    """The character that each byte of a text is part of, from how `bytes.decode` cuts it: a byte
    begins a character if decoding what comes before it and the rest apart changes nothing."""
    whole = data.decode("utf-8", "replace")
    starts = [
        i
        for i in range(len(data))
        if data[:i].decode("utf-8", "replace") + data[i:].decode("utf-8", "replace") == whole
    ]
    found = []
    for i in range(len(data)):
        start = max(s for s in starts if s <= i)
        found.append(len(data[:start].decode("utf-8", "replace")))
    return found


def _check(choice: dict[str, Any], before: bytes = b"", *, more: bool = False) -> None:
    """Offsets of a choice whose text begins with the bytes `before` its own; `more` may follow."""
    logprobs = choice["logprobs"]
    whole = before + bytes(map(_byte, logprobs["tokens"]))
    text = whole.decode("utf-8", "replace")
    if choice["finish_reason"] == "length" and not more:
        assert choice["text"] == text
    else:  # what is undecided, or begins a stop string, is not part of the text
        assert text.startswith(choice["text"])
    assert logprobs["text_offset"] == _offsets(whole)[len(before) :]


def _undecided(choice: dict[str, Any], before: bytes = b"") -> bytes:
    """The bytes of a choice that its text does not show yet."""
    data = before + bytes(map(_byte, choice["logprobs"]["tokens"]))
    shown = [
        n for n in range(len(data) + 1) if data[:n].decode("utf-8", "replace") == choice["text"]
    ]
    return data[max(shown) :]


def _joined(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The choice that a stream adds up to."""
    choices = [event["choices"][0] for event in events]
    names = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    parts = {n: [c["logprobs"][n] for c in choices] for n in names}
    return {
        "text": "".join(choice["text"] for choice in choices),
        "logprobs": {n: list(itertools.chain(*lists)) for n, lists in parts.items()},
        "finish_reason": choices[-1]["finish_reason"],
        "state": choices[-1].get("state"),
    }


def _both(service: Service, **body: Any) -> dict[str, Any]:
    """A choice with its log-probabilities, the same whole and streamed."""
    body = {"logprobs": 1, "seed": 4} | body
    whole, streamed = service.choice(**body), _joined(service.events(**body))
    for name in ("text", "logprobs", "finish_reason"):
        assert streamed[name] == whole[name], name
    return whole


def test_the_oracle_knows_characters() -> None:
    assert _offsets("aé€🦊b".encode()) == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4]
    assert _offsets(b"\xe2\x82A\xff\x80\xc3\xa9\xf0\x9f") == [0, 0, 1, 2, 3, 4, 4, 5, 5]


def test_a_syllable_that_begins_as_half_a_pair_does_is_one_character() -> None:
    """All of Hangul from U+D000 on: ED 80 to ED 9F."""
    data, offsets = "a\ud000한힣b".encode(), TextOffsets(b"", between=False)
    assert data[1] == data[4] == data[7] == 0xED
    assert (
        [offsets.of(byte) for byte in data] == _offsets(data) == [0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4]
    )


@pytest.mark.parametrize(
    ("chunks", "model", "prompt", "echo"),
    _in_turn(
        itertools.product(_CHUNKS),
        ["letters", "noise"],
        ["", "é", _LONG * 3, _BROKEN, _BROKEN * 5],
        _EITHER,
    ),
)
def test_offsets_are_those_of_the_characters(
    by: Callable[[Chunks], Service], chunks: Chunks, model: str, prompt: Any, echo: bool
) -> None:
    read = len(prompt.encode() if isinstance(prompt, str) else prompt)
    for count in (0, 2, 40) if echo else (1, 3, 40):
        body = {"model": model, "prompt": prompt, "max_tokens": count, "echo": echo, "seed": count}
        choice = _both(by(chunks), **body, temperature=1.5)
        assert len(choice["logprobs"]["tokens"]) == count + read * echo
        _check(choice)


_BEGUN: list[tuple[dict[str, Any], bytes | None]] = [  # a request, and what it leaves undecided
    ({"prompt": "Zoë paid", "max_tokens": 2}, "€".encode()[:1]),
    ({"prompt": "Zoë paid", "max_tokens": 3}, "€".encode()[:2]),
    ({"prompt": "Zoë paid €5 for a", "max_tokens": 4, "stop": ["café?"]}, b"caf"),
    ({"prompt": "Zoë paid €5 for a", "max_tokens": 5, "stop": ["café?"]}, b"caf\xc3"),
    ({"prompt": "Zoë paid €5 for a", "max_tokens": 5, "stop": ["café crème"]}, b"caf\xc3"),
    ({"prompt": "Zoë paid €5 for", "max_tokens": 3, "stop": ["a café"]}, b"a "),
    ({"model": "noise", "max_tokens": 12, "temperature": 1, "seed": 3}, None),
    ({"model": "noise", "max_tokens": 13, "temperature": 1, "seed": 5}, None),
]


@pytest.mark.parametrize(
    ("chunks", "echo", "begins", "between"),
    _in_turn(itertools.product(_CHUNKS, _EITHER), _BEGUN, ["", "é", _LONG * 2, _BROKEN]),
)
def test_offsets_go_on_after_a_state(
    by: Callable[[Chunks], Service],
    chunks: Chunks,
    echo: bool,
    begins: tuple[dict[str, Any], bytes | None],
    between: Any,
) -> None:
    chunked, (first, undecided) = by(chunks), begins
    body = {"temperature": 0, "logprobs": 1} | first
    begun = chunked.choice(**body, return_state=True)
    _check(begun, more=True)
    before = _undecided(begun)
    assert undecided is None or before == undecided
    more = {"prompt": between, "echo": echo, "state": begun["state"], "max_tokens": 30}
    choice = _both(chunked, **body | more | {"seed": None})
    if not between:
        _check(choice, before)
        return
    # A prompt comes between: what was undecided can only be what it looks like now.
    shown = before.decode("utf-8", "replace")
    assert choice["text"].startswith(shown)
    own = choice["logprobs"] | {
        "text_offset": [offset - len(shown) for offset in choice["logprobs"]["text_offset"]]
    }
    _check(choice | {"text": choice["text"].removeprefix(shown), "logprobs": own})


def test_any_cut_of_a_text_keeps_the_offsets_of_the_whole(chunked: Service) -> None:
    stops = ["\x7f\x7f", "owl!", "é €"]
    for model, stop in (("letters", stops), ("noise", stops), ("noise", [])):
        body = {"model": model, "prompt": "", "logprobs": 0, "temperature": 1.3, "stop": stop}
        whole = chunked.choice(**body, seed=7, max_tokens=24)
        _check(whole)
        for cut in range(1, 24):
            begun = chunked.choice(**body, seed=7, max_tokens=cut, return_state=True)
            rest = chunked.choice(**body, state=begun["state"], max_tokens=24 - cut)
            assert begun["text"] + rest["text"] == whole["text"]
            offsets = [n + len(begun["text"]) for n in rest["logprobs"]["text_offset"]]
            assert begun["logprobs"]["text_offset"] + offsets == whole["logprobs"]["text_offset"]


def test_each_choice_of_a_stream_has_offsets_of_its_own(chunked: Service) -> None:
    body = {"model": "noise", "max_tokens": 20, "logprobs": 1, "seed": 4, "n": 2}
    events = chunked.events(**body)
    for choice in chunked.complete(**body)["choices"]:
        mine = [e for e in events if e["choices"][0]["index"] == choice["index"]]
        assert _joined(mine)["logprobs"] == choice["logprobs"]


@pytest.mark.parametrize("model", ["letters", "noise"])
def test_bytes_of_a_stop_string_have_no_offset_and_move_none(chunked: Service, model: str) -> None:
    body = {"model": model, "prompt": _LONG, "echo": True, "max_tokens": 60, "temperature": 1.2}
    plain = _both(chunked, **body)
    written = plain["text"].removeprefix(_LONG)
    stops = sorted({c for c in written if c != "\ufffd"})
    assert len(stops) > 3
    for stop in [c for i, c in enumerate(stops) if i % 3 == 0 or not c.isascii()]:
        choice = _both(chunked, **body, stop=[stop, "\x7f" + stop])
        assert choice["finish_reason"] == "stop"
        assert choice["text"] == _LONG + written.partition(stop)[0]
        _check(choice)
        count = len(choice["logprobs"]["tokens"])
        for name, values in choice["logprobs"].items():
            assert values == plain["logprobs"][name][:count], name


def test_a_wrong_offset_is_found(chunked: Service) -> None:
    choice = chunked.choice(prompt="é€", echo=True, logprobs=0, max_tokens=3)
    choice["logprobs"]["text_offset"][-1] += 1
    with pytest.raises(AssertionError):
        _check(choice)
