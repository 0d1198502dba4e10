"""Where many share the chunks, what a stream has to say is gathered for a moment."""

import math
import threading
from contextlib import AbstractContextManager

import pytest

from service.engine.engine import Engine
from service.errors import EngineFault
from tests.service.engine.scripted import Call, ScriptedRunner, complete, engine, limits

_SCRIPT = b"0123456789" * 60
_NEVER_S = 1e9  # between two pieces, in the time of a test


def _engine(runner: ScriptedRunner, **changes: float) -> AbstractContextManager[Engine]:
    return engine(runner, limits=limits(**{"piece_s": _NEVER_S} | changes))


def _lengths(call: Call) -> list[int]:
    return [len(piece.text) for piece in call.result().pieces]


def test_a_stream_beside_others_tells_its_first_bytes_at_once_and_the_rest_together() -> None:
    calls = [Call(max_tokens=99) for _ in range(3)]
    with _engine(ScriptedRunner(_SCRIPT)) as started:
        started.submit([call.job for call in calls])
        assert [_lengths(call) for call in calls] == [[3, 96]] * 3


@pytest.mark.parametrize("piece_s", [_NEVER_S, math.inf])
def test_one_that_is_alone_tells_every_chunk(piece_s: float) -> None:
    call = Call(max_tokens=30)
    with _engine(ScriptedRunner(_SCRIPT), piece_s=piece_s) as started:
        started.submit([call.job])
        assert _lengths(call) == [3, 8, 8, 8, 3]


def test_what_was_gathered_is_told_once_the_moment_has_passed() -> None:
    calls = [Call(max_tokens=400) for _ in range(2)]
    with _engine(ScriptedRunner(_SCRIPT), piece_s=0.002) as started:
        started.submit([call.job for call in calls])
        lengths = _lengths(calls[0])
    assert sum(lengths) == 400
    assert len(lengths) > 2


def test_a_token_stands_at_the_end_of_what_was_told_with_it() -> None:
    calls = [Call(max_tokens=200, checkpoint_steps=20) for _ in range(2)]
    with _engine(ScriptedRunner(_SCRIPT)) as started:
        started.submit([call.job for call in calls])
        pieces = calls[0].result().pieces
    told = 0
    moments = 0
    for piece in pieces:
        told += len(piece.text)
        if piece.moment is not None:
            moments += 1
            assert piece.moment.drawn == told
    assert moments >= 7


def test_whoever_gives_its_slot_to_another_tells_what_it_has() -> None:
    held = threading.Event()
    reached = threading.Semaphore(0)

    def during(run: int) -> None:
        if run == 4:
            reached.release()
            assert held.wait(20)

    first, second, third = (Call(max_tokens=599) for _ in range(3))
    runner = ScriptedRunner(_SCRIPT, width=2, during=during)
    with _engine(runner, slice_s=0.0) as started:
        started.submit([first.job, second.job])
        assert reached.acquire(timeout=20)
        started.submit([third.job])
        held.set()
        # 3 bytes, then four chunks of 8 that were gathered until it was parked.
        assert first.pieces.get(timeout=20).text == _SCRIPT[:3].decode()
        assert first.pieces.get(timeout=20).text == _SCRIPT[3:35].decode()
        assert first.result().pieces[-1].last


@pytest.mark.parametrize("stop", [b"0123", b"4567", b"9"])
def test_what_was_gathered_is_told_before_an_error_while_the_last_state_is_found(
    stop: bytes,
) -> None:
    spec = {"max_tokens": 99, "stops": (stop,), "wants_state": True}
    script = _SCRIPT[10:40].replace(stop, b"x") + _SCRIPT
    call, beside = Call(**spec), Call(max_tokens=99)

    def during(run: int) -> None:
        if call.job.finished_at_once:
            raise ValueError("no more of this")

    with _engine(ScriptedRunner(script, during=during)) as started:
        started.submit([call.job, beside.job])
        *told, last = call.result().pieces
    assert isinstance(last.error, EngineFault)
    assert (last.text, last.logprobs) == ("", [])
    assert last.moment is not None
    rest = complete(script, last.moment, **spec | {"max_tokens": 99 - last.moment.drawn})
    whole = complete(script, **spec)
    assert "".join(piece.text for piece in told) + rest.text == whole.text
    assert rest.finish_reason == whole.finish_reason == "stop"


def test_the_first_byte_that_is_written_waits_for_no_echo() -> None:
    calls = [Call(prompt=b"p" * 16, max_tokens=40, echo=True) for _ in range(2)]
    with _engine(ScriptedRunner(_SCRIPT)) as started:
        started.submit([call.job for call in calls])
        first, second, _ = calls[0].result().pieces
    assert first.text == "p" * 16
    assert 0 < len(second.text) < 40


def test_a_fault_takes_nothing_that_was_gathered_with_it() -> None:
    def during(run: int) -> None:
        if run == 5:
            raise ValueError("no more of this")

    calls = [Call(max_tokens=99) for _ in range(2)]
    with _engine(ScriptedRunner(_SCRIPT, during=during)) as started:
        started.submit([call.job for call in calls])
        result = calls[0].result()
    assert isinstance(result.pieces[-1].error, EngineFault)
    assert result.text == _SCRIPT[: 3 + 4 * 8].decode()
