"""Every sampling option does what it says, and log-probabilities are the model's own."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.text.sampling import Sampling
from tests.service.serving import Service


@pytest.fixture(scope="module")
def service(scan: Service) -> Service:
    """One runner: `test_runtime.py` shows that the other one has the same bits."""
    return scan


_PROMPT = "Zoë paid €5 for a café crème. «Très bon!» said the owl 🦉. "
_BEFORE = "🦉. "  # what is drawn thousands of times, each of which reads it


def _bytes(choice: dict[str, Any]) -> bytes:
    """The bytes of a choice, from its log-probabilities."""
    tokens = choice["logprobs"]["tokens"]
    return bytes(int(t[8:], 16) if t.startswith("bytes:") else ord(t) for t in tokens)


def _next_byte(service: Service, **body: Any) -> np.ndarray:
    """The model's probabilities of the byte after `_BEFORE`, `(256,)`."""
    body = {"prompt": _BEFORE, "max_tokens": 1, "logprobs": 256} | body
    (top,) = service.choice(**body)["logprobs"]["top_logprobs"]
    found = {_bytes({"logprobs": {"tokens": [token]}})[0]: p for token, p in top.items()}
    assert sorted(found) == list(range(256))
    return np.exp([found[token] for token in range(256)])


def _draws(service: Service, count: int, **body: Any) -> np.ndarray:
    """How often each byte came after `_BEFORE` in 128 draws for each of `count` seeds: so many that
    one byte more than may be drawn would be."""
    total = np.zeros(256, int)
    body = {"prompt": _BEFORE, "max_tokens": 1, "n": 128, "logprobs": 0} | body
    for seed in range(count):
        choices = service.complete(**body, seed=seed)["choices"]
        total += np.bincount([_bytes(choice)[0] for choice in choices], minlength=256)
    return total


@pytest.mark.parametrize("model", ["letters", "noise"])
def test_temperature_zero_takes_the_most_probable_byte(service: Service, model: str) -> None:
    body = {"model": model, "prompt": _PROMPT, "max_tokens": 40, "logprobs": 1}
    choice = service.choice(**body, temperature=0)
    for token, top in zip(_bytes(choice), choice["logprobs"]["top_logprobs"], strict=True):
        assert _bytes({"logprobs": {"tokens": list(top)}}) == bytes([token])
    assert _bytes(service.choice(**body, temperature=0, seed=9)) == _bytes(choice)
    assert _bytes(service.choice(**body, top_k=1, temperature=2, seed=3)) == _bytes(choice)
    assert _bytes(service.choice(**body, min_p=1, seed=4)) == _bytes(choice)
    assert _bytes(service.choice(**body, top_p=1e-6, seed=5)) == _bytes(choice)
    assert _bytes(service.choice(**body, temperature=1e-9, seed=6)) == _bytes(choice)


# What is drawn at any temperature is computed a second time in test_oracle.py.
@pytest.mark.parametrize(
    ("model", "temperature"),
    [("letters", 2.0), pytest.param("letters", 1.0, marks=pytest.mark.long)],
)
def test_bytes_are_drawn_as_often_as_they_are_probable(
    service: Service, model: str, temperature: float
) -> None:
    scaled = _next_byte(service, model=model) ** (1 / temperature)
    expected = scaled / scaled.sum()
    draws = _draws(service, 16, model=model, temperature=temperature)
    deviation = np.sqrt(expected * (1 - expected) / draws.sum())
    assert (np.abs(draws / draws.sum() - expected) < 5 * deviation + 1e-3).all()


@pytest.mark.parametrize(("size", "count"), [(1, 1), (2, 1), (5, 1), (60, 4)])
def test_top_k_keeps_the_k_most_probable(service: Service, size: int, count: int) -> None:
    probabilities = _next_byte(service, model="noise")
    kept = set(np.argsort(-probabilities)[:size])
    drawn = set(np.flatnonzero(_draws(service, count, model="noise", top_k=size, temperature=2)))
    assert drawn <= kept
    assert len(drawn) > 0.8 * size


@pytest.mark.parametrize(("share", "count"), [(0.05, 1), (0.3, 2), (0.8, 4)])
def test_top_p_keeps_the_fewest_that_make_up_p(service: Service, share: float, count: int) -> None:
    probabilities = _next_byte(service, model="noise")
    order = np.argsort(-probabilities)
    size = int(np.searchsorted(np.cumsum(probabilities[order]), share)) + 1
    drawn = set(np.flatnonzero(_draws(service, count, model="noise", top_p=share)))
    assert drawn <= set(order[:size])
    assert len(drawn) > 0.6 * size


@pytest.mark.parametrize(("least", "count"), [(0.5, 2), (0.7, 1), (0.9, 1)])
def test_min_p_keeps_what_is_near_the_most_probable(
    service: Service, least: float, count: int
) -> None:
    probabilities = _next_byte(service, model="noise")
    kept = set(np.flatnonzero(probabilities >= least * probabilities.max()))
    drawn = set(np.flatnonzero(_draws(service, count, model="noise", min_p=least)))
    assert drawn <= kept
    assert len(drawn) > 0.6 * len(kept)


def test_without_restriction_any_byte_may_come(service: Service) -> None:
    assert np.count_nonzero(_draws(service, 6, model="noise", temperature=2)) > 200


def test_a_bias_of_minus_100_forbids(service: Service) -> None:
    body = {"max_tokens": 300, "temperature": 1.0, "seed": 4}
    assert "e" in service.text(**body)
    assert "e" not in service.text(**body, logit_bias={"101": -100})


def test_a_bias_of_100_forces(service: Service) -> None:
    assert service.text(max_tokens=30, seed=4, logit_bias={"120": 100}) == "x" * 30


def test_a_bias_multiplies_the_odds(service: Service) -> None:
    probabilities = _next_byte(service)
    best = int(probabilities.argmax())
    other = int(np.argsort(-probabilities)[1])
    bias = math.log(probabilities[best] / probabilities[other])  # now both are as probable
    draws = _draws(service, 8, logit_bias={str(other): bias})
    assert draws[best] + draws[other] > 0.5 * draws.sum()
    assert draws[other] / (draws[best] + draws[other]) == pytest.approx(0.5, abs=0.1)


def test_sampling_options_do_not_change_logprobs(service: Service) -> None:
    plain = _next_byte(service, temperature=1)
    options = {"temperature": 0.2, "top_k": 2, "top_p": 0.5, "min_p": 0.1, "logit_bias": {"7": 9}}
    assert (_next_byte(service, **options) == plain).all()


@pytest.mark.parametrize("model", ["letters", "noise"])
def test_logprobs_are_those_of_the_trained_model(
    service: Service, artifacts: Path, model: str
) -> None:
    torch = pytest.importorskip("torch")
    from export.artifact import load_model, read_artifact

    trained = load_model(artifacts / model, read_artifact(artifacts / model)).double()
    text = _PROMPT.encode()
    inputs = torch.tensor([[10, *text[:-1]]]).T  # (T, 1); a newline stands before the first byte
    with torch.no_grad():
        logits, _ = trained(inputs, trained.initial_state(1))
    expected = torch.log_softmax(logits[:, 0], -1)[torch.arange(len(text)), list(text)]

    body = {"model": model, "prompt": _PROMPT, "max_tokens": 0, "echo": True, "logprobs": 0}
    choice = service.choice(**body)
    assert choice["text"] == _PROMPT
    assert _bytes(choice) == text
    found = choice["logprobs"]["token_logprobs"]
    assert found == pytest.approx(expected.tolist(), abs=1e-5)


def test_logprobs_of_writing_are_those_of_reading(service: Service) -> None:
    body = {"prompt": "It ", "max_tokens": 60, "temperature": 1.4, "seed": 2, "logprobs": 3}
    written = service.choice(**body)
    prompt = list(b"It " + _bytes(written))
    read = service.choice(prompt=prompt, max_tokens=0, echo=True, logprobs=3)
    for key in ("tokens", "token_logprobs", "top_logprobs"):
        assert written["logprobs"][key] == read["logprobs"][key][3:]


def test_top_logprobs_are_the_most_probable_in_order(service: Service) -> None:
    every = service.choice(prompt=_PROMPT, max_tokens=1, seed=1, logprobs=256)["logprobs"]
    few = service.choice(prompt=_PROMPT, max_tokens=1, seed=1, logprobs=5)["logprobs"]
    assert list(few["top_logprobs"][0].items()) == list(every["top_logprobs"][0].items())[:5]
    values = list(every["top_logprobs"][0].values())
    assert values == sorted(values, reverse=True)
    assert sum(map(math.exp, values)) == pytest.approx(1, abs=1e-12)


def test_streamed_logprobs_are_the_whole_ones(service: Service) -> None:
    body = {"prompt": "Zoë ", "max_tokens": 80, "temperature": 1, "seed": 6, "logprobs": 2}
    for options in ({}, {"echo": True}, {"stop": ["é", "the"]}):
        whole = service.choice(**body, **options)["logprobs"]
        joined: dict[str, list[Any]] = {key: [] for key in whole}
        for event in service.events(**body, **options):
            for key, values in event["choices"][0]["logprobs"].items():
                joined[key] += values
        assert joined == whole


def test_text_offsets_point_at_the_characters(service: Service) -> None:
    choice = service.choice(prompt=_PROMPT, max_tokens=60, temperature=0, echo=True, logprobs=0)
    text, data = choice["text"], _bytes(choice)
    assert text == data.decode()
    starts = [i for i, character in enumerate(text) for _ in character.encode()]
    assert choice["logprobs"]["text_offset"] == starts


def test_text_offsets_hold_in_text_that_is_not_utf_8(service: Service) -> None:
    choice = service.choice(model="noise", max_tokens=200, seed=1, logprobs=0)
    offsets = choice["logprobs"]["text_offset"]
    assert len(offsets) == 200
    assert offsets == sorted(offsets)
    assert offsets[-1] == len(choice["text"]) - 1
    for token, offset in zip(_bytes(choice), offsets, strict=True):
        if token < 128:
            assert choice["text"][offset] == chr(token)


def test_usage_counts_bytes(service: Service) -> None:
    usage = service.complete(prompt="é€🦉", max_tokens=7, seed=1)["usage"]
    assert usage == {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}
    usage = service.complete(prompt=["é", "€€"], n=3, max_tokens=5)["usage"]
    assert usage == {"prompt_tokens": 8, "completion_tokens": 30, "total_tokens": 38}


def test_an_empty_request_writes_16_bytes(service: Service) -> None:
    answer = service.complete()
    assert answer["usage"]["completion_tokens"] == 16
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["logprobs"] is None


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_bias_counts_at_any_temperature(temperature: float) -> None:
    bias = Sampling(temperature=temperature, logit_bias={65: -5.0}).row()["logit_bias"]
    assert dict(enumerate(bias.tolist())) == dict.fromkeys(range(256), 0.0) | {65: -5.0}
