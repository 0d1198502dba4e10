"""From every token in a stream the rest of it comes again, byte for byte."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.errors import EngineFault, NotReady
from service.state import Moment
from service.text.completion import TextEdge
from tests.service.engine.scripted import SEED, Call, Result, ScriptedRunner, complete, engine
from tests.service.serving import Service, running, settings

_SCRIPT = "The naïve 🦊 paid €5, END of it: EEND, ENDEND.".encode()
# Bytes that no UTF-8 has, characters cut short, and stop strings in between.
_MESS = b"a\xe2\x82END\xf0\x9f\xa6b\xffEN\xe2\x82\xacD\x80E\xc3NDEND\xf0\x9f\x8e\xb2"
_SCRIPTS = pytest.mark.parametrize("script", [_SCRIPT, _MESS], ids=["words", "mess"])
_STOPS = (b"not there", b"END of", b"ENDEND", "🦊".encode(), "€5".encode(), b"\xf0\x9f\x8e\xb2")


def _checked(script: bytes, spec: dict[str, Any], chunk: int) -> int:
    """How many tokens a completion has, after going on from each."""
    whole = complete(script, chunk=chunk, wants_state=True, checkpoint_steps=1, **spec)
    after = complete(script, whole.moment, max_tokens=len(script) - whole.moment.drawn)
    *before, _ = whole.pieces
    tokens = 0
    for number, piece in enumerate(before):
        if piece.moment is None:
            continue
        tokens += 1
        assert piece.moment.state["position"] == len(spec.get("prompt", b"")) + piece.moment.drawn
        left = spec["max_tokens"] - piece.moment.drawn
        rest = spec | {"max_tokens": left, "prompt": b"", "echo": False}
        again = complete(script, piece.moment, wants_state=True, **rest)
        seen = Result(before[: number + 1], 0)
        assert seen.text + again.text == whole.text
        assert seen.tokens + again.tokens == whole.tokens
        assert again.finish_reason == whole.finish_reason
        # A stop string that a token stands in is gone back on as far as to the token.
        further = len(script) - again.moment.drawn
        assert complete(script, again.moment, max_tokens=further).text == after.text
    return tokens


@_SCRIPTS
@pytest.mark.parametrize("chunk", [1, 3, 8, 100])
def test_every_token_of_a_stream_gives_the_rest(script: bytes, chunk: int) -> None:
    assert _checked(script, {"max_tokens": len(script)}, chunk) >= min(chunk, 2) - 1
    for stop in _STOPS:
        _checked(script, {"max_tokens": len(script), "stops": (stop,)}, chunk)


@_SCRIPTS
def test_tokens_stand_inside_characters_and_stop_strings(script: bytes) -> None:
    stops = (b"ENDEND", b"not there")
    spec = {"max_tokens": len(script), "stops": stops}
    whole = complete(script, chunk=1, checkpoint_steps=1, **spec)
    held = {piece.moment.edge.undecided for piece in whole.pieces if piece.moment}
    assert {b"", b"EN", b"END", b"\xf0\x9f"} <= held


@_SCRIPTS
@pytest.mark.parametrize("chunk", [1, 3, 8])
def test_log_probabilities_go_on_where_the_text_does(script: bytes, chunk: int) -> None:
    for stop in _STOPS:
        spec = {"max_tokens": len(script), "logprobs": 1, "stops": (stop,)}
        assert _checked(script, spec, chunk) >= 1


@pytest.mark.parametrize("echo", [False, True])
def test_no_token_comes_before_the_prompt_has_been_read(echo: bool) -> None:
    prompt = "Read all of this, naïve or not".encode()
    spec = {"prompt": prompt, "max_tokens": 20, "echo": echo}
    whole = complete(_SCRIPT, checkpoint_steps=1, chunk=5, **spec)
    drawn = [piece.moment.drawn for piece in whole.pieces if piece.moment]
    assert drawn[0] in range(5)
    assert _checked(_SCRIPT, spec, 5) == len(drawn)


def test_a_character_begun_by_the_prompt_is_no_stop_string() -> None:
    euro = "€".encode()
    spec = {"prompt": b"a" + euro[:1], "max_tokens": 7, "echo": True, "stops": (euro,)}
    script = euro[1:] + b"5!" + euro
    assert complete(script, chunk=1, **spec).text == "a€5!"
    assert _checked(script, spec, 1) == 7


def test_tokens_come_as_often_as_was_asked() -> None:
    script = bytes(random.Random(0).choices(b"abcdefgh ", k=300))
    whole = complete(script, max_tokens=300, chunk=7, checkpoint_steps=20)
    drawn = [piece.moment.drawn for piece in whole.pieces if piece.moment]
    gaps = [after - before for before, after in zip([0, *drawn], drawn, strict=False)]
    assert len(drawn) >= 10
    assert all(20 <= gap < 20 + 7 for gap in gaps)
    assert not any(piece.moment for piece in complete(script, max_tokens=300).pieces)


@pytest.mark.parametrize("seed", range(60))
def test_a_stream_cut_again_and_again_gives_the_whole_text(seed: int) -> None:
    choose = random.Random(seed)
    script = choose.choice([_SCRIPT, _MESS, b"ENENENDENENDEND" * 2])
    spec = {"stops": tuple(choose.sample(_STOPS, 2)), "prompt": b"", "checkpoint_steps": 1}
    expected = complete(script, max_tokens=len(script), **spec)
    moment, text, left = None, "", len(script)
    while True:
        chunk = choose.choice([1, 2, 5, 20])
        whole = complete(script, moment, max_tokens=left, chunk=chunk, **spec)
        tokens = [i for i, piece in enumerate(whole.pieces) if piece.moment]
        if not tokens or choose.random() < 0.2:
            break
        cut = choose.choice(tokens)
        text += "".join(piece.text for piece in whole.pieces[: cut + 1])
        start = 0 if moment is None else moment.drawn
        moment = whole.pieces[cut].moment
        assert moment is not None
        left -= moment.drawn - start
    assert text + whole.text == expected.text
    assert whole.finish_reason == expected.finish_reason


def test_one_that_the_service_ends_tells_where_it_stands() -> None:
    call = Call(max_tokens=5)
    call.job.accept(_outputs(b"ab\xe2"))
    call.job.fail(NotReady("stopping"), {"position": 3})
    text, end = call.result().pieces
    assert text.text == "ab"
    assert (end.text, end.finish_reason) == ("", None)
    assert end.moment is not None
    assert (end.moment.drawn, end.moment.edge.undecided) == (3, b"\xe2")


@pytest.mark.parametrize("drawn", [b"", b"\xe2"])
def test_one_that_has_nothing_to_show_yet_tells_where_it_stands(drawn: bytes) -> None:
    call = Call(prompt=b"p", max_tokens=5)
    call.job.accept(_outputs(b"p" + drawn))
    call.job.fail(NotReady("stopping"), {"position": 1 + len(drawn)})
    (end,) = call.result().pieces
    assert end.moment is not None
    assert (end.moment.drawn, end.moment.edge.undecided) == (len(drawn), drawn)


@_SCRIPTS
@pytest.mark.parametrize("chunk", [3, 8, 20])
@pytest.mark.parametrize("stop", _STOPS)
@pytest.mark.parametrize("logprobs", [None, 0])
def test_one_that_is_ended_while_its_last_state_is_found_can_be_gone_on_from(
    script: bytes, chunk: int, stop: bytes, logprobs: int | None
) -> None:
    spec = {"max_tokens": len(script), "stops": (stop,), "logprobs": logprobs}
    whole = complete(script, chunk=chunk, wants_state=True, **spec)
    ended = _ended_in_its_replay(script, chunk, spec)
    if ended is None:
        return  # its last chunk ended where it did
    told = ended.pieces[-1]
    assert isinstance(told.error, EngineFault)
    assert (told.text, told.finish_reason) == ("", None)
    if logprobs is not None and told.moment is None:
        return  # those of bytes held back are in no token
    assert told.moment is not None
    left = len(script) - told.moment.drawn
    again = complete(script, told.moment, chunk=5, wants_state=True, **spec | {"max_tokens": left})
    assert ended.text + again.text == whole.text
    assert ended.tokens + again.tokens == whole.tokens
    assert again.finish_reason == whole.finish_reason


def test_what_was_held_back_before_it_began_is_not_lost_with_its_last_state() -> None:
    held = Moment({"position": np.zeros((), np.int64)}, SEED, 0, 0, TextEdge(undecided=b"EN"))
    call = Call(held, max_tokens=4, wants_state=True)
    call.job.anchor({"position": 0})
    assert call.job.accept(_outputs(b"abcd"))
    call.job.fail(NotReady("stopping"))
    shown, told = call.result().pieces
    assert (shown.text, shown.error, shown.moment) == ("EN", None, None)
    assert (told.text, told.finish_reason) == ("", None)
    assert told.moment is not None
    assert (told.moment.drawn, told.moment.edge.undecided) == (0, b"")


def _ended_in_its_replay(script: bytes, chunk: int, spec: dict[str, Any]) -> Result | None:
    """A stream whose run fails once it has written all; None if no run comes then."""
    call = Call(wants_state=True, **spec)

    def during(number: int) -> None:
        if call.job.finished_at_once:
            raise ValueError("no more of this")

    with engine(ScriptedRunner(script, during=during), chunk=chunk, first=chunk) as started:
        started.submit([call.job])
        result = call.result()
    return None if result.finish_reason else result


def test_one_that_ends_in_its_prompt_has_nothing_to_tell() -> None:
    call = Call(prompt=b"abc", max_tokens=5)
    call.job.accept(_outputs(b"ab"))
    call.job.fail(NotReady("stopping"), {"position": 2})
    assert call.result().pieces[-1].moment is None


def _outputs(written: bytes) -> dict[str, Any]:
    return {"next": np.frombuffer(written, np.uint8).astype(np.int64)}


_CHUNKS = [(1, 1), pytest.param((7, 3), marks=pytest.mark.long), (32, 8)]


@pytest.fixture(scope="module", params=_CHUNKS, ids=str)
def cut(request: pytest.FixtureRequest, artifacts: Path) -> Iterator[Service]:
    """A service whose streams have a token as often as can be."""
    chunk, first = request.param
    sizes = {"chunk_steps": chunk, "first_chunk_steps": first, "checkpoint_steps": 1}
    with running(settings(artifacts, runner="scan", **sizes)) as service:
        yield service


_BODIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "prompt": {"prompt": "Zoë paid €5 for", "echo": True},
    "prompts": {"prompt": ["It rained", "Zoë"], "n": 2},
    "choices": {"n": 3, "stop": ["e ", "é"]},
    "options": {"top_p": 0.9, "min_p": 0.01, "logit_bias": {"101": 2}, "temperature": 0.7},
    "greedy": {"temperature": 0, "prompt": "It rained;"},
    "logprobs": {"logprobs": 2, "stop": "Zo"},
}


@pytest.mark.parametrize("name", _BODIES)
def test_every_event_with_a_token_gives_the_rest(cut: Service, name: str) -> None:
    body = {"max_tokens": 60, "seed": 5, "return_state": True} | _BODIES[name]
    choices = [event["choices"][0] for event in cut.events(**body, resume=True)]
    some = random.Random(0).sample(choices, min(len(choices), 12))
    resumed = [(choice, choices.index(choice)) for choice in some if "resume" in choice]
    assert resumed
    for choice, number in resumed:
        expected = [c for c in choices[number + 1 :] if c["index"] == choice["index"]]
        again = [e["choices"][0] for e in cut.events(**body | choice["resume"])]
        assert _text(again) == _text(expected)
        assert _logprobs(again) == _logprobs(expected)
        assert again[-1]["finish_reason"] == expected[-1]["finish_reason"]
        if again[-1]["finish_reason"] == "length":
            assert again[-1]["state"] == expected[-1]["state"]


def _text(choices: list[dict[str, Any]]) -> str:
    return "".join(choice["text"] for choice in choices)


def _logprobs(choices: list[dict[str, Any]]) -> list[Any]:
    return [
        each
        for choice in choices
        if choice["logprobs"]
        for each in zip(*[choice["logprobs"][n] for n in ("tokens", "token_logprobs")], strict=True)
    ]


def test_a_stream_that_did_not_ask_has_no_tokens(cut: Service) -> None:
    assert not any("resume" in event["choices"][0] for event in cut.events(max_tokens=50))


def test_a_whole_answer_cannot_be_gone_on_with(scan: Service) -> None:
    refused = scan.post(resume=True)
    assert refused.status_code == 400
    assert "resume needs stream" in refused.json()["error"]["message"]


def test_a_token_comes_each_time_as_many_steps_are_done_as_it_takes() -> None:
    whole = complete(b"0123456789" * 5, max_tokens=44, chunk=8, checkpoint_steps=16)
    tokens = [piece.moment.drawn for piece in whole.pieces if piece.moment]
    assert tokens == [19, 35]  # of the chunks' ends at 3, 11, 19 and so on


def test_no_token_stands_where_a_byte_is_held_back_whose_log_probability_is_wanted() -> None:
    script = b"aEaENaEbEND"
    for logprobs in (None, 0, 1):
        spec = {"max_tokens": 11, "stops": (b"END",), "logprobs": logprobs}
        whole = complete(script, chunk=1, checkpoint_steps=1, **spec)
        held = [piece.moment.edge.undecided for piece in whole.pieces if piece.moment]
        assert any(held) == (logprobs is None)
