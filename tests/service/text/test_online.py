"""A language model followed byte by byte, against its completions."""

from typing import Any

import numpy as np
import pytest

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
