"""Whoever is refused at the door would be refused by the queue, whatever they ask for."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from service.engine import terms
from service.engine.pace import Pace
from service.errors import Overloaded
from service.ink import schemas as ink_schemas
from service.ink.breaking import break_text
from service.ink.line import USUAL_POINTS_PER_CHARACTER
from service.text.schemas import CompletionRequest, least
from tests.service.engine.scripted import Call, ScriptedRunner, limits, made_engine

_TRIED = settings(deadline=None)  # what a busy machine takes for one is no fault
_NUMBERS = st.integers(-2, 60) | st.floats(0, 60) | st.none()
_TEXTS = st.text(st.sampled_from("ab \né€🦊"), max_size=8)
_PROMPTS = _TEXTS | st.lists(_TEXTS, max_size=3) | st.lists(st.integers(0, 255), max_size=8)


@example({"model": "letters", "prompt": "It rained", "max_tokens": 3})
@_TRIED
@given(
    st.fixed_dictionaries(
        {"model": st.just("letters")},
        optional={"prompt": _PROMPTS, "max_tokens": _NUMBERS, "n": st.integers(1, 3)},
    )
)
def test_no_request_takes_fewer_steps_than_it_seems_to(body: dict[str, Any]) -> None:
    wanted = least(body)
    try:
        asked = CompletionRequest.model_validate(body)
    except ValidationError:
        return
    if wanted is None:
        return
    calls = [Call(prompt=p, max_tokens=asked.max_tokens) for p in asked.prompts()]
    name, steps = wanted
    assert name == "letters"
    assert 0 <= steps <= calls[0].job.steps_expected()
    if isinstance(body.get("prompt", ""), str) and body.get("prompt", "").isascii():
        assert steps == calls[0].job.steps_expected()


@_TRIED
@given(
    waiting=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 40)), max_size=12),
    caller=st.sampled_from("abcd"),
    steps=st.integers(1, 40),
    more=st.integers(0, 40),
    queue=st.integers(1, 12),
)
def test_the_door_refuses_nobody_whom_the_queue_would_take(
    waiting: list[tuple[str, int]], caller: str, steps: int, more: int, queue: int
) -> None:
    some = limits(queue_size=queue, max_wait_s=0.1)
    slow = Pace((0.01, 0.0), (0.01, 0.0))
    engine = made_engine(ScriptedRunner(b"x"), limits=some, measure=lambda runner: slow)
    engine.ready, engine._pace = True, engine._measure(engine._slots.runner)
    for other, wanted in waiting:
        engine._slots.schedule.add([Call(max_tokens=wanted).job], terms.Terms(other))
    token = terms._terms.set(terms.Terms(caller))
    try:
        refused = engine.refusal(steps)
        at_submit: Overloaded | None = None
        try:
            engine.submit([Call(max_tokens=steps + more).job])
        except Overloaded as error:
            at_submit = error
        assert at_submit is not None or refused is None
        if not more:
            assert (refused and refused.message) == (at_submit and at_submit.message)
    finally:
        terms._terms.reset(token)


# Many a word that is longer than a line, and has to be divided.
_WORDS = st.text(st.sampled_from("aaaaaMMMMiiiZ5,. -\n"), max_size=60)


@example(text="M" * 30, room=80)
@example(text="a@" + "M" * 30, room=80)
@_TRIED
@given(text=_WORDS, room=st.integers(80, 140))
def test_no_line_takes_fewer_steps_than_it_seems_to(text: str, room: int) -> None:
    wanted = ink_schemas.least({"model": "scrawl", "text": text})
    lines = [line for line in break_text(text, room) if line]
    assert (wanted is None) == (not lines)
    if wanted is not None:
        assert wanted[0] == "scrawl"
        assert 0 < wanted[1] <= USUAL_POINTS_PER_CHARACTER * len(lines[0])
