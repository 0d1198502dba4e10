"""How much one request may ask for: the last that is let in, and the first that is not."""

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from contract.text import NEUTRAL
from service.errors import InvalidRequest
from service.state import Moment
from service.text.completion import TextEdge
from service.text.online import TextSaid
from service.text.routes import Call, _make_call, _token_text
from service.text.schemas import CompletionRequest

_LIMITS: Any = SimpleNamespace(max_tokens=100, max_request_steps=1000, checkpoint_steps=64)


def _call(**body: Any) -> Call:
    """A request as it would run, on a model that does not."""
    model: Any = SimpleNamespace(beginning=lambda seed: Moment({}, seed, 0, 0, TextEdge()))

    async def make() -> Call:
        return _make_call(CompletionRequest(**{"seed": 0} | body), model, _LIMITS)

    return asyncio.run(make())


@pytest.mark.parametrize(
    ("last", "first"),
    [
        ({"stop": ["x"] * 16}, {"stop": ["x"] * 17}),
        ({"stop": ["x" * 256]}, {"stop": ["x" * 257]}),
        ({"metadata": {str(i): "" for i in range(16)}}, {"metadata": dict.fromkeys("a" * 17, "")
          | {str(i): "" for i in range(16)}}),
        ({"prompt": ["a"] * 128}, {"prompt": ["a"] * 129}),
        ({"logprobs": 0, "max_tokens": 140_000}, {"logprobs": 0, "max_tokens": 140_001}),
        ({"logprobs": 1, "max_tokens": 70_000}, {"logprobs": 1, "max_tokens": 70_001}),
        ({"logprobs": 0, "n": 2, "max_tokens": 70_000},
         {"logprobs": 0, "n": 2, "max_tokens": 70_001}),
        ({"logprobs": 0, "prompt": ["ab", "c"], "max_tokens": 69_998, "echo": True},
         {"logprobs": 0, "prompt": ["ab", "cd"], "max_tokens": 69_999, "echo": True}),
        ({"logprobs": 0, "prompt": ["ab", "cd"], "max_tokens": 70_000},
         {"logprobs": 0, "prompt": ["ab", "cd"], "max_tokens": 70_001}),
        ({"logit_bias": {"0": -100.0, "255": 100.0}}, {"logit_bias": {"0": -100.1}}),
        ({"logit_bias": {str(i): 1.0 for i in range(256)}},
         {"logit_bias": {str(i): 1.0 for i in range(257)}}),
        ({"logprobs": 256, "max_tokens": 1}, {"logprobs": 257, "max_tokens": 1}),
        ({"temperature": 2.0}, {"temperature": 2.001}),
        ({"top_p": 1e-9}, {"top_p": 0.0}),
        ({"min_p": 1.0}, {"min_p": 1.001}),
    ],
)  # fmt: skip
def test_a_request_may_have_so_much_and_no_more(
    last: dict[str, Any], first: dict[str, Any]
) -> None:
    CompletionRequest(**last)
    with pytest.raises(ValidationError):
        CompletionRequest(**first)


def test_a_message_has_4096_steps_at_most() -> None:
    TextSaid(bytes=[0] * 4096, write=4096)
    for more in ({"bytes": [0] * 4097}, {"write": 4097}, {"bytes": []}, {"write": 0}):
        with pytest.raises(ValidationError):
            TextSaid.model_validate(more)


@pytest.mark.parametrize(
    ("last", "first"),
    [
        ({"max_tokens": 100}, {"max_tokens": 101}),
        ({"prompt": ["a"] * 64, "n": 2, "max_tokens": 1},
         {"prompt": ["a"] * 43, "n": 3, "max_tokens": 1}),
        ({"prompt": "a" * 400, "max_tokens": 100, "n": 2},
         {"prompt": "a" * 401, "max_tokens": 100, "n": 2}),
    ],
)  # fmt: skip
def test_a_service_lets_in_so_much_and_no_more(last: dict[str, Any], first: dict[str, Any]) -> None:
    _call(**last)
    with pytest.raises(InvalidRequest):
        _call(**first)


def test_choices_are_of_the_prompts_in_their_order_and_have_every_stop_string() -> None:
    stops = [f"{n}." for n in range(16)]
    specs: Any = [job.spec for job in _call(prompt=["b", "a"], n=2, stop=stops).exchange.jobs]  # type: ignore[attr-defined]
    assert [spec.prompt for spec in specs] == [b"b", b"b", b"a", b"a"]
    assert {spec.stops for spec in specs} == {tuple(stop.encode() for stop in stops)}


def test_a_prompt_counts_once_however_many_choices_it_has() -> None:
    assert _call(prompt=["ab", "cde"], n=3, max_tokens=1).usage()["prompt_tokens"] == 5


@pytest.mark.parametrize(("resume", "steps"), [(True, 64), (False, None)])
def test_moments_to_go_on_from_are_made_for_those_who_ask(resume: bool, steps: int | None) -> None:
    (job,) = _call(stream=True, resume=resume, max_tokens=2).exchange.jobs
    assert job.spec.checkpoint_steps == steps  # type: ignore[attr-defined]


def test_choices_go_on_counting_from_that_of_a_token() -> None:
    begun = Moment({"byte": np.zeros((), np.int64)}, 5, 2, 0, TextEdge())
    codec = SimpleNamespace(go_on=lambda token, seed, policy: begun)

    async def make() -> list[int]:
        body = CompletionRequest(state="token", n=3, max_tokens=1)
        model: Any = SimpleNamespace(codec=codec)
        return [job.moment.choice for job in _make_call(body, model, _LIMITS).exchange.jobs]

    assert asyncio.run(make()) == [2, 3, 4]


def test_a_seed_of_nought_is_a_seed() -> None:
    assert _call(seed=0).seed == 0


def test_a_seed_that_is_made_up_is_a_number_of_every_client() -> None:
    """In JavaScript whole numbers end at 2 ** 53."""
    seeds = [_call(seed=None).seed for _ in range(64)]
    assert len({*seeds}) == 64
    assert 0 <= min(seeds) <= max(seeds) < 2**53


def test_what_is_past_all_sense_is_a_number_of_the_graph_still() -> None:
    row = CompletionRequest(temperature=1e-30, top_k=10**30).sampling().row()
    assert (row["inverse_temperature"], row["top_k"]) == (1e6, 256)


def test_who_asks_for_nothing_gives_the_graph_every_option_as_it_is_neutral() -> None:
    row = CompletionRequest().sampling().row()
    assert {name: value.max() for name, value in row.items()} == NEUTRAL


@pytest.mark.parametrize("wrong", [256, -1])
def test_of_many_tokens_the_one_that_is_none_is_named(wrong: int) -> None:
    with pytest.raises(ValidationError, match=f" {wrong} is no token"):
        CompletionRequest(prompt=[0, 255, wrong])


def test_a_token_is_its_character_to_the_last_of_ascii() -> None:
    tokens = ["\0", "~", "\x7f", "bytes:\\x80", "bytes:\\xff"]
    assert [_token_text(token) for token in (0, 126, 127, 128, 255)] == tokens


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"prompt": "x" * 1001, "max_tokens": 0}, "prompt"),
        ({"prompt": "x" * 400, "max_tokens": 0, "n": 3}, "n"),
        ({"prompt": "x" * 500, "max_tokens": 1, "n": 2}, "max_tokens"),
        ({"prompt": "x" * 1000, "max_tokens": 1}, "max_tokens"),
        ({"prompt": "x" * 950, "max_tokens": 51}, "max_tokens"),
    ],
)
def test_of_too_many_steps_the_field_is_named_that_has_to_change(
    body: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest, match="n times prompt and max_tokens") as refused:
        _call(**body)
    assert refused.value.param == field
