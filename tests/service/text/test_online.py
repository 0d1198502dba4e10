"""A language model followed byte by byte, against its completions."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contract.noise import UniformStream
from service.text.online import OnlineText
from tests.service.serving import Service
from tests.service.writing import InkService, online


def _completion(service: Service, prompt: list[int], **options: Any) -> dict[str, Any]:
    body = {"model": "letters", "prompt": prompt, **options}
    answer = service.client.post("/v1/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]


def test_the_distribution_of_the_next_byte_is_that_of_a_completion(pen: InkService) -> None:
    text = list("Zoë paid €".encode())
    with online(pen, model="letters") as session:
        for size in range(1, len(text) + 1):
            answer = session.ask(bytes=text[size - 1 : size])
            assert answer["step"] == size + 1
            found = np.array(answer["log_probabilities"])
            assert np.exp(found).sum() == pytest.approx(1, abs=1e-4)
            choice = _completion(pen, text[:size], max_tokens=1, logprobs=256)
            (top,) = choice["logprobs"]["top_logprobs"]
            for token, expected in top.items():
                byte = ord(token) if len(token) == 1 else int(token[-2:], 16)
                assert found[byte] == pytest.approx(expected, abs=2e-6)
            assert len(top) == 256


@pytest.mark.parametrize("seed", [1, -5])
def test_bytes_sent_one_by_one_are_those_sent_together(pen: InkService, seed: int) -> None:
    text = list(b"It rained; the")
    with online(pen, model="letters", seed=seed) as session:
        together = session.ask(bytes=text)
        wrote = session.ask(write=30)
    with online(pen, model="letters", seed=seed) as session:
        for byte in text:
            last = session.ask(bytes=[byte])
        assert last == together
        written = [byte for n in (1, 4, 25) for byte in session.ask(write=n)["bytes"]]
    assert written == wrote["bytes"]
    assert wrote["step"] == len(text) + 31


def test_what_is_written_after_reading_is_the_completion_of_it(pen: InkService) -> None:
    expected = _completion(pen, [], max_tokens=40, seed=9, temperature=1)["text"]
    with online(pen, model="letters", seed=9) as session:
        wrote = bytes(session.ask(write=40)["bytes"])
    assert wrote.decode(errors="replace").startswith(expected.rstrip("\ufffd")[:30])


def test_a_session_draws_as_the_choice_that_it_goes_on_from(ink: InkService) -> None:
    model = ink.app.state.models["letters"]
    for choice in (0, 2):
        moment = replace(model.beginning(5), choice=choice, drawn=3)
        drawn = OnlineText(model, moment)._noise(4)["uniform"]
        assert drawn.tolist() == UniformStream(5, choice).take(3, 4).tolist()


def test_what_is_written_need_not_be_what_comes(pen: InkService) -> None:
    with online(pen, model="letters", seed=2) as session:
        session.ask(bytes=list(b"It "))
        wrote = session.ask(write=7)["bytes"]
        after = session.ask(bytes=[120])
    with online(pen, model="letters", seed=2) as session:
        assert session.ask(bytes=[*b"It ", *wrote, 120]) == after


def test_bytes_that_a_completion_held_back_are_told_at_the_opening(pen: InkService) -> None:
    cut = {"logit_bias": {"226": 100}, "max_tokens": 1, "seed": 4, "temperature": 1}
    begun = _completion(pen, list(b"It "), **cut, return_state=True)
    assert begun["text"] == ""
    going_on = _completion(pen, [], state=begun["state"], max_tokens=6)["text"]
    with online(pen) as session:
        held = session.ask(model="letters", state=begun["state"])["undecided"]
        wrote = session.ask(write=6.0)["bytes"]
        again = session.ask(state=True)["state"]
    assert held == [226]
    assert bytes(held + wrote).decode(errors="replace") == going_on
    with online(pen) as session:  # a byte of its own it shows when it writes
        assert "undecided" not in session.ask(model="letters", state=again)


def _wrote(pen: InkService, count: int = 30) -> tuple[str, bytes]:
    """The token of a session that has written, and what it would write next."""
    with online(pen, model="letters", seed=6) as session:
        session.ask(bytes=list(b"It "))
        session.ask(write=5)
        token = session.ask(state=True)["state"]
        return token, bytes(session.ask(write=count)["bytes"])


def test_with_a_seed_a_session_goes_on_in_another_way(pen: InkService) -> None:
    with online(pen, model="letters", seed=6) as session:
        token = session.ask(state=True)["state"]
    with online(pen, model="letters", seed=7) as session:
        expected = session.ask(write=20)["bytes"]
    with online(pen, model="letters", state=token, seed=7) as session:
        assert session.ask(write=20)["bytes"] == expected
    with online(pen, model="letters", state=token) as session:
        assert session.ask(write=20)["bytes"] != expected


def _whole(pen: InkService, **body: Any) -> Any:
    answer = pen.client.post("/v1/completions", json={"model": "letters", "prompt": ""} | body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_after_a_session_no_byte_more_is_written_than_was_asked_for(
    pen: InkService, count: int
) -> None:
    token, expected = _wrote(pen)
    body = {"state": token, "max_tokens": count, "logprobs": 2, "return_state": True}
    answer = _whole(pen, **body)
    (choice,) = answer["choices"]
    assert choice["text"] == expected[:count].decode()
    assert answer["usage"]["completion_tokens"] == count
    told = choice["logprobs"]
    assert told["tokens"] == list(expected[:count].decode())
    assert told["text_offset"] == list(range(count))
    assert [p is None for p in told["token_logprobs"]] == [i == 0 for i in range(count)]
    assert [top is None for top in told["top_logprobs"]] == [i == 0 for i in range(count)]
    more = _completion(pen, [], state=choice["state"], max_tokens=30 - count)
    assert choice["text"] + more["text"] == expected.decode()
    with online(pen, model="letters", state=choice["state"]) as session:
        assert bytes(session.ask(write=30 - count or 1)["bytes"])[: 30 - count] == expected[count:]


def test_after_a_session_a_stream_can_be_gone_on_with(pen: InkService) -> None:
    token, written = _wrote(pen, 1200)
    expected = written.decode(errors="replace")
    asked = {"model": "letters", "prompt": "", "state": token, "max_tokens": 1200, "stream": True}
    with pen.client.stream("POST", "/v1/completions", json=asked | {"resume": True}) as answer:
        events = [json.loads(e[6:]) for e in answer.iter_lines() if e.startswith("data: {")]
    text, resumed = "", 0
    for event in events:
        (choice,) = event["choices"]
        text += choice["text"]
        if choice.get("resume"):
            rest = _whole(pen, **(asked | choice["resume"] | {"stream": False}))
            assert text + rest["choices"][0]["text"] == expected
            resumed += 1
    assert text == expected
    assert resumed


@pytest.mark.parametrize("prompt", [b"\nA", b"A", "€".encode()])
def test_a_prompt_comes_in_place_of_what_a_session_has_drawn(
    pen: InkService, prompt: bytes
) -> None:
    token, _ = _wrote(pen)
    with online(pen, model="letters", state=token) as session:
        found = np.array(session.ask(bytes=list(prompt))["log_probabilities"])
    body = {"state": token, "prompt": list(prompt), "max_tokens": 1, "echo": True, "logprobs": 0}
    answer = _whole(pen, **body)
    (choice,) = answer["choices"]
    assert choice["text"][:-1] == prompt.decode()
    assert answer["usage"]["prompt_tokens"] == len(prompt)
    told = choice["logprobs"]["token_logprobs"]
    assert told[0] is None
    assert len(told) == len(prompt) + 1
    assert told[-1] == pytest.approx(found[ord(choice["logprobs"]["tokens"][-1])], abs=2e-6)
    assert _completion(pen, list(prompt), state=token, max_tokens=1)["text"] == choice["text"][-1]


@pytest.mark.parametrize(("begin", "size"), [(0, 1), (0, 2), (1, 2), (3, 1)])
def test_a_stop_string_may_begin_with_what_a_session_has_drawn(
    pen: InkService, begin: int, size: int
) -> None:
    token, expected = _wrote(pen)
    stop = expected[begin : begin + size]
    end = expected.find(stop)
    body = {"state": token, "max_tokens": 30, "stop": stop.decode(), "logprobs": 0}
    answer = _whole(pen, **body, return_state=True)
    (choice,) = answer["choices"]
    assert (choice["text"], choice["finish_reason"]) == (expected[:end].decode(), "stop")
    assert choice["logprobs"]["tokens"] == list(choice["text"])
    assert answer["usage"]["completion_tokens"] == end + size
    more = _completion(pen, [], state=choice["state"], max_tokens=30 - end)["text"]
    assert choice["text"] + more == expected.decode()
    if not end:  # it is the moment of the session still
        prompted = {"prompt": "A", "max_tokens": 9}
        after = _whole(pen, state=choice["state"], **prompted)
        assert after["choices"] == _whole(pen, state=token, **prompted)["choices"]
