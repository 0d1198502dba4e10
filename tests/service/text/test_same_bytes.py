"""The same seeded request gives the same text alone, in company, streamed, continued, anywhere."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from tests.service.serving import KEY, Service, on_cpu, running, settings

_SIZE = 60  # ends in the third chunk: the first has 8 steps, the others 32
# Where a text is cut: everywhere, or at, beside and between the ends of chunks.
_CUTS: Sequence[int] = (0, 1, 4, 7, 8, 9, 23, 39, 40, 41, 50, 59, 60)
if os.environ.get("EVENKEEL_LONG"):
    _CUTS = range(_SIZE + 1)
# One request per way of choosing bytes. `noise` writes mostly what is not UTF-8.
_REQUESTS: list[dict[str, Any]] = [
    {"model": "letters", "temperature": 1.3},
    {"model": "letters", "temperature": 0},
    {"model": "letters", "temperature": 1.6, "top_p": 0.95, "prompt": "Zoë paid €"},
    {"model": "letters", "top_k": 3, "logit_bias": {"101": 2.0}, "prompt": [226, 130]},
    {"model": "noise", "temperature": 1.0, "min_p": 0.2},
    {"model": "noise", "temperature": 2.0, "top_k": 100, "prompt": "🦊"},
]
_CASES = [
    pytest.param(r | {"seed": 40 + i, "max_tokens": _SIZE}, id=f"{i}-{r['model']}")
    for i, r in enumerate(_REQUESTS)
]
_EVERY_REQUEST = pytest.mark.parametrize("request_", _CASES)


def _neighbours(model: str) -> list[dict[str, Any]]:
    """16 requests with other options, some of which sort, some of which read a long prompt."""
    return [
        {
            "model": model,
            "seed": i,
            "max_tokens": 20 + 15 * i,
            "temperature": [0, 0.3, 1, 1.9][i % 4],
            "top_p": [1, 0.5, 0.9][i % 3],
            "prompt": "word " * (12 * (i % 5)),
            "return_state": i % 4 == 1,
            "stop": ["€", "rain"] if i % 5 == 2 else None,
        }
        for i in range(16)
    ]


@pytest.fixture(scope="module")
def replica(artifacts: Path) -> Iterator[Service]:
    """A service with the same key, the other runner and other chunks."""
    chosen = settings(artifacts, runner="slots", slots=5, chunk_steps=11, first_chunk_steps=2)
    with running(chosen) as started:
        yield started


@_EVERY_REQUEST
def test_a_repeated_request_gives_the_same_text(service: Service, request_: dict[str, Any]) -> None:
    text = service.text(**request_)
    assert service.text(**request_) == text
    greedy = request_.get("temperature") == 0
    assert (service.text(**request_ | {"seed": 1000}) == text) == greedy


@_EVERY_REQUEST
def test_runner_slots_and_chunks_change_no_byte(
    service: Service, replica: Service, request_: dict[str, Any]
) -> None:
    assert service.text(**request_) == replica.text(**request_)


@_EVERY_REQUEST
def test_sixteen_neighbours_change_no_byte(service: Service, request_: dict[str, Any]) -> None:
    alone = service.text(**request_)
    with ThreadPoolExecutor(20) as pool:
        neighbours = [pool.submit(service.post, **n) for n in _neighbours(request_["model"])]
        among = [pool.submit(service.text, **request_) for _ in range(4)]
        assert {future.result() for future in among} == {alone}
        assert {future.result().status_code for future in neighbours} == {200}


@_EVERY_REQUEST
def test_a_streamed_text_is_the_whole_text(service: Service, request_: dict[str, Any]) -> None:
    whole = service.choice(**request_, return_state=True)
    events = service.events(**request_, return_state=True)
    assert len(events) >= 3  # one per chunk
    assert "".join(event["choices"][0]["text"] for event in events) == whole["text"]
    last = events[-1]["choices"][0]
    assert last["finish_reason"] == whole["finish_reason"] == "length"
    assert last["state"] == whole["state"]
    assert all("state" not in event["choices"][0] for event in events[:-1])


@_EVERY_REQUEST
def test_continued_at_every_offset_the_text_is_whole(
    service: Service, request_: dict[str, Any]
) -> None:
    whole = service.text(**request_)
    options = {k: v for k, v in request_.items() if k not in ("prompt", "seed")}
    for size in _CUTS:
        first = service.choice(**request_ | {"max_tokens": size}, return_state=True)
        rest = options | {"max_tokens": _SIZE - size, "state": first["state"]}
        assert first["text"] + service.text(**rest) == whole


@_EVERY_REQUEST
def test_a_chain_of_single_bytes_is_the_whole_text(scan: Service, request_: dict[str, Any]) -> None:
    options = {k: v for k, v in request_.items() if k not in ("prompt", "seed")}
    options |= {"max_tokens": 1, "return_state": True}
    request_, count = request_ | {"max_tokens": 0}, 20  # one byte is like another
    choice = scan.choice(**request_, return_state=True)
    text = choice["text"]
    for _ in range(count):
        choice = scan.choice(**options, state=choice["state"])
        text += choice["text"]
    assert text + scan.text(
        **options | {"max_tokens": 0, "return_state": False}, state=choice["state"]
    ) == scan.text(**request_ | {"max_tokens": count})


@pytest.mark.parametrize("stop", ["€5", "the", "ó", "é", "\n", "ed", ["river", "owl", "ver rose"]])
def test_stopped_and_continued_the_text_is_whole(service: Service, stop: str | list[str]) -> None:
    options = {"temperature": 0.7, "max_tokens": 200}
    whole = service.complete(**options, seed=3)["choices"][0]["text"]
    stopped = service.complete(**options, seed=3, stop=stop, return_state=True)
    first = stopped["choices"][0]
    found = [s for s in ([stop] if isinstance(stop, str) else stop) if s in whole]
    assert first["finish_reason"] == ("stop" if found else "length")
    assert all(s not in first["text"] for s in found)
    assert first["text"] == service.streamed_text(**options, seed=3, stop=stop, return_state=True)
    used = len(first["text"].encode())
    if found:
        assert whole.startswith(first["text"])
        rest = service.text(**options | {"max_tokens": 200 - used}, state=first["state"])
        assert first["text"] + rest == whole


@_EVERY_REQUEST
def test_n_choices_differ_and_the_first_is_the_only_one(
    service: Service, request_: dict[str, Any]
) -> None:
    choices = service.complete(**request_, n=3)["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    assert choices[0]["text"] == service.text(**request_)
    greedy = request_.get("temperature") == 0
    assert len({choice["text"] for choice in choices}) == (1 if greedy else 3)
    again = service.complete(**request_, n=2)["choices"]
    assert [c["text"] for c in again] == [c["text"] for c in choices[:2]]


def test_each_choice_continues_as_itself(service: Service) -> None:
    options = {"temperature": 1.4, "seed": 8}
    whole = service.complete(**options, n=3, max_tokens=60)["choices"]
    halves = service.complete(**options, n=3, max_tokens=25, return_state=True)["choices"]
    for all_, half in zip(whole, halves, strict=True):
        rest = service.text(temperature=1.4, max_tokens=35, state=half["state"])
        assert half["text"] + rest == all_["text"]


def test_a_streamed_choice_is_the_whole_choice(service: Service) -> None:
    body = {"prompt": ["Zoë", "It "], "n": 2, "temperature": 1.4, "seed": 8, "max_tokens": 70}
    texts = [""] * 4
    for event in service.events(**body):
        texts[event["choices"][0]["index"]] += event["choices"][0]["text"]
    assert texts == [choice["text"] for choice in service.complete(**body)["choices"]]


@pytest.mark.parametrize(
    "prompts", [["Zoë paid", "", "It rained 🦉"], [[90, 111], [], [240, 159, 166]], ["only one"]]
)
def test_prompts_in_a_list_are_continued_as_if_alone(service: Service, prompts: list[Any]) -> None:
    options = {"seed": 5, "temperature": 1.2, "max_tokens": 50}
    choices = service.complete(prompt=prompts, **options)["choices"]
    alone = [service.text(prompt=prompt, **options) for prompt in prompts]
    assert [choice["text"] for choice in choices] == alone


def test_a_prompt_of_token_ids_is_the_prompt_of_its_bytes(service: Service) -> None:
    options = {"seed": 5, "max_tokens": 50}
    ids = list("Zoë paid €".encode())
    assert service.text(prompt=ids, **options) == service.text(prompt="Zoë paid €", **options)


def test_a_state_forks_and_rewinds(service: Service) -> None:
    options = {"temperature": 1.5, "max_tokens": 40}
    first = service.choice(**options, seed=1, return_state=True)["state"]
    one = service.choice(**options, state=first, return_state=True)
    assert service.text(**options, state=first) == one["text"]  # fork
    other = service.text(**options, state=first, seed=2)
    assert other != one["text"]  # its own future from here on
    service.text(**options, state=one["state"])
    assert service.text(**options, state=first) == one["text"]  # rewind
    assert service.text(**options, state=first, seed=2) == other


def test_a_prompt_after_a_state_reads_on(service: Service) -> None:
    begun = service.choice(prompt="Zoë paid", max_tokens=0, return_state=True)
    assert begun["text"] == ""
    options = {"temperature": 0, "max_tokens": 60}
    assert service.text(**options, prompt=" €5", state=begun["state"]) == service.text(
        **options, prompt="Zoë paid €5"
    )


@on_cpu
@_EVERY_REQUEST
def test_a_state_continues_after_a_restart_and_on_the_other_runner(
    service: Service, replica: Service, request_: dict[str, Any]
) -> None:
    options = {k: v for k, v in request_.items() if k not in ("prompt", "seed")}
    first = service.choice(**request_, return_state=True)
    assert replica.choice(**request_, return_state=True)["state"] == first["state"]
    here = service.choice(**options, state=first["state"], return_state=True)
    assert replica.choice(**options, state=first["state"], return_state=True) == here


def test_a_state_is_worth_nothing_under_another_key(scan: Service, letters: Path) -> None:
    state = scan.choice(max_tokens=5, return_state=True)["state"]

    def here(key: str | None) -> Settings:
        return settings(letters, runner="scan", state_key=key)

    with running(here("a key of somebody else")) as stranger:
        refused = stranger.post(state=state)
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "state"
    with running(here(None)) as keyless:
        assert keyless.post(state=state).status_code == 400
    with running(here(KEY)) as restarted:
        assert restarted.post(state=state).status_code == 200


def test_a_state_of_another_model_is_a_conflict(scan: Service) -> None:
    state = scan.choice(model="noise", max_tokens=5, return_state=True)["state"]
    refused = scan.post(model="letters", state=state)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "state_mismatch"


def test_requests_without_a_seed_differ_and_tell_their_seed(service: Service) -> None:
    one, other = (service.complete(temperature=1.5, max_tokens=60) for _ in range(2))
    assert one["choices"][0]["text"] != other["choices"][0]["text"]
    again = service.complete(temperature=1.5, max_tokens=60, seed=one["seed"])
    assert again["choices"][0]["text"] == one["choices"][0]["text"]
