"""A completion says the same whether it is cut, stopped, continued, or none of these."""

import math
import os
import random
from dataclasses import replace
from weakref import ReferenceType, ref

import numpy as np
import pytest

from contract.text import FILTERS, NEUTRAL
from service.errors import NotReady
from service.state import Moment
from service.text.completion import (
    ByteLogprob,
    Completion,
    CompletionSpec,
    TextEdge,
    TextPiece,
    byte_logprobs,
)
from service.text.sampling import Sampling
from tests.service.engine.scripted import Call, complete

_SCRIPT = "The naïve 🦊 paid €5, END of it: EEND, ENDEND.".encode()
# Bytes that no UTF-8 has, characters cut short, and stop strings in between.
_MESS = b"a\xe2\x82END\xf0\x9f\xa6b\xffEN\xe2\x82\xacD\x80E\xc3NDEND\xf0\x9f\x8e\xb2"
_CHAINS = 150 if os.environ.get("EVENKEEL_LONG") else 50
_SCRIPTS = pytest.mark.parametrize("script", [_SCRIPT, _MESS], ids=["words", "mess"])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


@_SCRIPTS
@pytest.mark.parametrize("chunk", [1, 2, 7, 100])
def test_a_completion_is_the_text_of_its_bytes(script: bytes, chunk: int) -> None:
    for size in range(len(script) + 1):
        result = complete(script, max_tokens=size, chunk=chunk)
        assert result.text == _text(script[:size])
        assert (result.finish_reason, result.written) == ("length", size)


def test_at_temperature_0_no_seed_chooses_between_bytes_that_tie() -> None:
    moment, coldest = Call().job.moment, Sampling(temperature=0)
    calls = [Call(replace(moment, seed=seed), sampling=coldest) for seed in (1, 2)]
    one, other = (call.job.inputs(8)["uniform"].tolist() for call in calls)
    assert one == other


def test_of_the_states_before_chunks_those_are_kept_that_may_be_gone_back_to() -> None:
    job, states = Call(max_tokens=99, stops=(b"END",), wants_state=True).job, list[ReferenceType]()
    chunks = [b"abc", b"ab", b"aE", b"bENDx"]
    for chunk in chunks:
        state = {"position": np.zeros(1)}
        states.append(ref(state["position"]))
        job.anchor(state)
        job.accept({"next": np.frombuffer(chunk, np.uint8)})
    del state
    assert [state() is not None for state in states] == [False, False, True, True]
    state, again = job.replay()
    assert state["position"] is states[-1]()
    assert again["forced"].tolist() == [ord("b")]


@_SCRIPTS
@pytest.mark.parametrize("chunk", [1, 5, 100])
def test_continued_at_any_byte_the_text_is_whole(script: bytes, chunk: int) -> None:
    for size in range(len(script) + 1):
        first = complete(script, max_tokens=size, wants_state=True, chunk=chunk)
        assert first.moment.state["position"] == size
        rest = complete(script, first.moment, max_tokens=len(script) - size, chunk=chunk)
        assert first.text + rest.text == _text(script)


@pytest.mark.parametrize("chunk", [1, 3, 100])
@pytest.mark.parametrize("stop", ["END", "E", "🦊", "€5", "END of it", "ENDEND", "not there"])
def test_a_stop_string_ends_the_text_before_it(stop: str, chunk: int) -> None:
    whole = _text(_SCRIPT)
    result = complete(_SCRIPT, max_tokens=len(_SCRIPT), stops=(stop.encode(),), chunk=chunk)
    before, found, _ = whole.partition(stop)
    assert result.text == before
    assert result.finish_reason == ("stop" if found else "length")
    assert result.written == len((before + found).encode())


@_SCRIPTS
@pytest.mark.parametrize("chunk", [1, 3, 100])
@pytest.mark.parametrize("stop", ["END", "E", "D", "🦊", "€", "b"])
def test_continued_after_a_stop_string_the_text_is_whole(
    script: bytes, stop: str, chunk: int
) -> None:
    first = complete(
        script, max_tokens=len(script), stops=(stop.encode(),), wants_state=True, chunk=chunk
    )
    left = len(script) - first.moment.drawn
    rest = complete(script, first.moment, max_tokens=left, chunk=chunk)
    assert first.moment.state["position"] == first.moment.drawn
    assert first.text + rest.text == _text(script)


@pytest.mark.parametrize("seed", range(_CHAINS))
def test_any_chain_of_continuations_gives_the_whole_text(seed: int) -> None:
    choose = random.Random(seed)
    script = choose.choice([_SCRIPT, _MESS, b"ENENENDENENDEND" * 2])
    moment, text = None, ""
    while moment is None or moment.drawn < len(script):
        drawn = 0 if moment is None else moment.drawn
        stops = choose.sample(
            ["END", "EN", "D", "N", "ENDE", "🦊", "€", "DEN"], choose.randint(0, 3)
        )
        result = complete(
            script,
            moment,
            max_tokens=min(choose.randint(0, 9), len(script) - drawn),
            stops=tuple(stop.encode() for stop in stops),
            wants_state=True,
            chunk=choose.choice([1, 2, 5, 20]),
        )
        if result.finish_reason == "stop" and result.moment.drawn == drawn:
            # Nothing new but a stop string: go past it.
            result = complete(script, moment, max_tokens=1, wants_state=True)
        moment, text = result.moment, text + result.text
        assert moment.state["position"] == moment.drawn
    assert text + complete(script, moment, max_tokens=0).text == _text(script)


@pytest.mark.parametrize("size", [0, 3])
def test_a_stop_string_among_the_bytes_of_a_token_leaves_the_rest_of_them(size: int) -> None:
    script = b"x-ababab"
    first = complete(script, max_tokens=5, stops=(b"abac",), wants_state=True)
    assert (first.text, first.moment.edge.undecided) == ("x-", b"aba")
    second = complete(script, first.moment, max_tokens=size, stops=(b"b",), wants_state=True)
    assert (second.text, second.finish_reason) == ("a", "stop")
    assert complete(script, second.moment, max_tokens=3).text == "babab"


def test_a_prompt_is_read_and_not_repeated() -> None:
    result = complete(b"reply", prompt="Ünd".encode(), max_tokens=5, wants_state=True)
    assert result.text == "reply"
    assert (result.moment.state["position"], result.moment.drawn) == (4 + 5, 5)


def test_a_prompt_after_an_unfinished_character_shows_it_as_broken() -> None:
    script = "a€b".encode()
    first = complete(script, max_tokens=2, wants_state=True)
    assert (first.text, first.moment.edge.undecided) == ("a", b"\xe2")
    rest = complete(script, first.moment, prompt=b"?", max_tokens=3)
    assert rest.text == _text(b"\xe2") + _text(script[2:])


def test_echo_puts_the_prompt_first() -> None:
    assert complete(b"reply", prompt="Ünd".encode(), max_tokens=5, echo=True).text == "Ündreply"
    assert complete(b"", prompt=b"score me", max_tokens=0, echo=True).text == "score me"


def test_echo_of_a_prompt_that_ends_inside_a_character_completes_it() -> None:
    euro = "€".encode()
    assert complete(euro[2:], prompt=euro[:2], max_tokens=1, echo=True).text == "€"


@pytest.mark.parametrize("size", range(4))
def test_no_stop_string_counts_in_what_a_prompt_left_of_a_character(size: int) -> None:
    stop = "€".encode()
    script, of = stop[2:] + b"5!", {"stops": (stop,), "wants_state": True}
    first = complete(script, prompt=b"a" + stop[:2], max_tokens=0, echo=True, **of)
    again = complete(script, first.moment, max_tokens=0, **of)
    rest = complete(script, again.moment, max_tokens=size, **of)
    whole = complete(script, prompt=b"a" + stop[:2], max_tokens=size, echo=True, **of)
    assert first.text + again.text + rest.text == whole.text
    assert rest.finish_reason == whole.finish_reason == "length"


@pytest.mark.parametrize("size", range(1, len(_SCRIPT) + 1))
def test_every_byte_written_has_one_logprob(size: int) -> None:
    first = complete(_SCRIPT, max_tokens=size, logprobs=0, wants_state=True)
    rest = complete(_SCRIPT, first.moment, max_tokens=len(_SCRIPT) - size, logprobs=0)
    assert first.tokens + rest.tokens == _SCRIPT


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_logprobs_end_where_the_text_ends_before_a_stop_string(chunk: int) -> None:
    result = complete(_SCRIPT, max_tokens=40, stops=(b"END",), logprobs=0, chunk=chunk)
    assert result.tokens.decode() == result.text


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_logprobs_come_with_the_text_of_their_bytes(chunk: int) -> None:
    result = complete(_SCRIPT, max_tokens=len(_SCRIPT), stops=(b"EEE",), logprobs=0, chunk=chunk)
    for piece in result.pieces:
        assert bytes(entry.token for entry in piece.logprobs).decode() == piece.text


def test_logprobs_before_a_stop_string_come_with_the_text_before_it() -> None:
    call = Call(max_tokens=9, stops=(b"END",), logprobs=0)
    written = np.frombuffer(b"the END", np.uint8).astype(np.int64)
    assert call.job.accept({"next": written, "logits": np.eye(256, dtype=np.float32)[written]})
    call.job.publish()  # while its last state is still to be found
    piece = call.pieces.get_nowait()
    assert (piece.text, bytes(entry.token for entry in piece.logprobs)) == ("the ", b"the ")


def test_what_was_shown_is_not_shown_again_with_an_error() -> None:
    call = Call(max_tokens=9, wants_state=True)
    call.job.anchor(call.job.state)
    call.job.accept({"next": np.frombuffer(b"shown", np.uint8).astype(np.int64)})
    call.job.publish()
    call.job.fail(NotReady("gone"), {"position": np.array(5)})
    result = call.result()
    assert (result.text, result.moment.drawn, result.moment.state["position"]) == ("shown", 5, 5)


def test_logprobs_of_a_prompt_come_only_with_echo() -> None:
    spec = {"prompt": b"abc", "max_tokens": 2, "logprobs": 0}
    assert complete(b"xy", **spec).tokens == b"xy"
    assert complete(b"xy", **spec, echo=True).tokens == b"abcxy"


def test_a_logprob_is_the_log_of_the_softmax() -> None:
    logits = np.random.default_rng(0).normal(size=(5, 256)).astype(np.float32) * 4
    entries = byte_logprobs(logits, np.arange(5), top=3)
    for token, (entry, row) in enumerate(zip(entries, logits.astype(np.float64), strict=True)):
        probabilities = np.exp(row) / np.exp(row).sum()
        assert entry.token == token
        assert entry.logprob == pytest.approx(math.log(probabilities[token]), abs=1e-12)
        best = np.sort(probabilities)[::-1][:3]
        assert [math.exp(p) for _, p in entry.top] == pytest.approx(list(best), abs=1e-12)
        assert [probabilities[t] for t, _ in entry.top] == pytest.approx(list(best), abs=1e-12)


def test_of_symbols_that_tie_the_first_is_the_likeliest() -> None:
    tied = np.zeros((1, 256), np.float32)
    tied[0, [200, 7, 31]] = 2
    (entry,) = byte_logprobs(tied, np.array([0]), top=5)
    assert [token for token, _ in entry.top] == [7, 31, 200, 0, 1]


def test_only_options_that_leave_symbols_out_ask_for_the_filtered_graph() -> None:
    for neutral in (Sampling(), Sampling(temperature=0, logit_bias={1: 2.0})):
        assert not neutral.filtered
    each = {
        "top_p": Sampling(top_p=0.99),
        "top_k": Sampling(top_k=255),
        "log_min_p": Sampling(min_p=0.01),
    }
    assert each.keys() == set(FILTERS)
    for name, filtering in each.items():
        assert filtering.filtered
        assert filtering.row()[name] != NEUTRAL[name]
    for sampling in (Sampling(), Sampling(top_k=9)):
        assert Call(sampling=sampling).job.filtered is sampling.filtered


def test_a_prompt_that_is_read_is_no_first_output() -> None:
    call = Call(prompt=b"abc", max_tokens=2)
    assert call.job.steps_to_first() == 4
    told = []
    for read in (b"ab", b"c", b"d"):
        call.job.accept({"next": np.frombuffer(read, np.uint8).astype(np.int64)})
        told.append(call.job.first_output_s is not None)
    assert told == [False, False, True]


def test_a_failed_completion_ends_with_its_error() -> None:
    call = Call()
    call.job.fail(NotReady("gone"))
    (piece,) = call.result().pieces
    assert piece.last
    assert piece.finish_reason is None
    assert str(piece.error) == "gone"


def test_what_a_session_drew_comes_with_its_null_whatever_happens_then() -> None:
    edge = TextEdge(ahead=True, undecided=b"w")
    moment = Moment({"token": np.array(119), "h": np.zeros(2)}, 1, 0, 4, edge)
    spec = CompletionSpec(prompt=b"", max_tokens=3, sampling=Sampling(), logprobs=0)
    pieces: list[TextPiece] = []
    job = Completion(spec, moment, pieces.append)
    job.anchor(moment.state)
    job.fail(NotReady("gone"))
    shown = [(piece.text, piece.logprobs) for piece in pieces]
    assert shown[0] == ("w", [ByteLogprob(119, None, [])])
    assert job.steps_wanted() == 2
