"""The sampler of the service against a second one, in numpy and float64, written from what the API
promises: `softmax((logits + bias) / temperature)`, filters that look at the whole of it, and the
inverse CDF in byte order at the uniforms of the request's seed.

Logits are what the service tells of all 256 bytes; nothing of the graph's own sampler is used.
"""

import asyncio
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from contract.noise import UniformStream
from service.state import Moment
from service.text.completion import Completion, CompletionSpec, TextEdge
from service.text.online import OnlineText
from service.text.sampling import Sampling
from tests.service.serving import Service

Array = NDArray[np.float64]

_SIZE = 60
# Of float32 sums of 256 terms; nearer to a border the byte is nobody's to say.
_NEAR = 2e-5
_BIASES: dict[str, float] = {"32": 1.5, "101": -2.0, "195": 3.0, "10": -100.0, "0": 4.0}
_REQUESTS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.5},
    {"temperature": 2.0},
    {"logit_bias": _BIASES},
    {"temperature": 0.4, "logit_bias": _BIASES},
    {"temperature": 1.9, "logit_bias": _BIASES},
    {"top_k": 5},
    {"top_k": 2, "temperature": 1.7, "logit_bias": _BIASES},
    {"top_p": 0.7},
    {"top_p": 0.35, "temperature": 1.5, "logit_bias": {"101": 1.0}},
    {"min_p": 0.3},
    {"min_p": 0.05, "temperature": 1.8},
    {"top_k": 40, "top_p": 0.5, "temperature": 1.3},
    {"top_k": 3, "top_p": 0.97, "min_p": 0.01, "temperature": 1.6},
    {"top_k": 60, "top_p": 0.9, "min_p": 0.4, "temperature": 0.8, "logit_bias": _BIASES},
]


def _byte(token: str) -> int:
    return int(token[8:], 16) if token.startswith("bytes:") else ord(token)


def _told(choice: dict[str, Any]) -> tuple[list[int], Array]:
    """The bytes of a choice, and the log-probabilities `(T, 256)` of all there are."""
    listed = choice["logprobs"]
    logprobs = np.empty((len(listed["tokens"]), 256))
    for row, top in zip(logprobs, listed["top_logprobs"], strict=True):
        assert len(top) == 256
        for token, value in top.items():
            row[_byte(token)] = value
    return [_byte(token) for token in listed["tokens"]], logprobs


def _kept(p: Array, top_k: int = 256, top_p: float = 1.0, min_p: float = 0.0) -> NDArray[np.bool_]:
    """Which bytes the filters leave: the `top_k` most probable, the fewest that make up `top_p`,
    and those of `min_p` times the most probable."""
    falling = np.sort(p)[::-1]
    kept = (p >= falling[top_k - 1]) & (p >= min_p * falling[0])
    if top_p < 1:
        kept &= p >= falling[int((falling.cumsum() < top_p).sum())]
    return kept


def _cumulative(
    logprobs: Array, temperature: float = 1.0, logit_bias: dict[str, float] | None = None, **f: Any
) -> Array:
    """The cumulative distribution `(256,)` that a byte is drawn from."""
    bias = np.zeros(256)
    for token, value in (logit_bias or {}).items():
        bias[int(token)] = value
    scores = (logprobs + bias) / temperature
    p = np.exp(scores - scores.max())
    p /= p.sum()
    p = np.where(_kept(p, **f), p, 0)
    return np.asarray((p / p.sum()).cumsum())


@pytest.mark.parametrize("model", ["letters", "noise"])
@pytest.mark.parametrize("options", _REQUESTS, ids=range(len(_REQUESTS)))
def test_a_second_sampler_draws_the_very_bytes(
    scan: Service, model: str, options: dict[str, Any]
) -> None:
    told = unclear = 0
    seed, prompt = (1, "") if model == "noise" else (2, "Zoë paid €5 ")
    body = {"model": model, "seed": seed, "max_tokens": _SIZE, "logprobs": 256}
    tokens, logprobs = _told(scan.choice(**body, **options, prompt=prompt))
    uniforms = UniformStream(seed).take(0, _SIZE)
    for token, row, uniform in zip(tokens, logprobs, uniforms, strict=True):
        cumulative = _cumulative(row, **options)
        if np.abs(cumulative - uniform).min() < _NEAR:
            unclear += 1
        else:
            assert token == int((cumulative < uniform).sum())
            told += 1
    assert told > 20 * unclear


def test_the_second_sampler_would_see_an_option_that_is_misread() -> None:
    """Each of these would draw another byte somewhere among as many draws."""
    random = np.random.default_rng(0)
    logprobs = np.log(random.dirichlet(np.full(256, 0.1), _SIZE).clip(1e-12))
    uniforms = UniformStream(1).take(0, _SIZE)

    def drawn(**options: Any) -> list[int]:
        pairs = zip(logprobs, uniforms, strict=True)
        return [int((_cumulative(row, **options) < u).sum()) for row, u in pairs]

    biased = {"logit_bias": _BIASES, "temperature": 0.4}
    after = {"logit_bias": {t: v * 0.4 for t, v in _BIASES.items()}, "temperature": 0.4}
    assert drawn(**biased) != drawn(**after)
    assert drawn() != drawn(temperature=1.1)
    assert drawn(top_k=5) != drawn(top_k=6)
    assert drawn(top_p=0.7) != drawn(top_p=0.75)
    assert drawn(min_p=0.3) != drawn(min_p=0.2)


@pytest.mark.parametrize("model", ["letters", "noise"])
@pytest.mark.parametrize("bias", [None, {"32": 1.5, "101": -2.0, "200": 0.25}])
def test_at_temperature_zero_the_first_of_the_best_is_taken(
    scan: Service, model: str, bias: dict[str, float] | None
) -> None:
    body = {"model": model, "max_tokens": _SIZE, "logprobs": 256, "temperature": 0}
    tokens, logprobs = _told(scan.choice(**body, seed=4, logit_bias=bias))
    added = np.zeros(256)
    for token, value in (bias or {}).items():
        added[int(token)] = value
    assert tokens == (logprobs + added).argmax(-1).tolist()


def test_of_bytes_that_tie_at_temperature_zero_the_first_is_taken_whatever_the_seed(
    scan: Service,
) -> None:
    """A bias of 100 makes float32 forget what lies under it, so these bytes do tie or nearly so;
    whichever the best is, no seed changes it."""
    bias = {str(token): 100.0 for token in range(0, 256, 2)}
    body = {"model": "noise", "max_tokens": 40, "temperature": 0, "logit_bias": bias}
    texts = {scan.text(**body, seed=seed, prompt="a") for seed in range(12)}
    assert len(texts) == 1


@pytest.mark.parametrize("seed", [3, -8])
def test_greedy_asks_for_the_first_of_a_tie_whatever_the_seed(seed: int) -> None:
    spec = CompletionSpec(prompt=b"ab", max_tokens=9, sampling=Sampling(temperature=0))
    moment = Moment({}, seed, 0, 0, TextEdge())
    inputs = Completion(spec, moment, lambda piece: None).inputs(9)
    assert (inputs["uniform"] == 2.0**-24).all()


def test_the_next_float32_below_the_best_is_never_drawn_at_temperature_zero() -> None:
    inverse = np.float32(Sampling(temperature=0).row()["inverse_temperature"])
    for best in np.float32([0.01, 1.0, 20.0]):
        below = np.float32(np.nextafter(best, np.float32(0)) - best)
        assert np.exp(below * inverse) == 0
    assert np.isfinite(np.float32(250) * inverse)


def test_a_prompt_uses_up_no_uniform(scan: Service) -> None:
    drawn = []
    for prompt in ("", "a", "Zoë paid €5 for a café crème. " * 3):
        body = {"model": "noise", "seed": 6, "max_tokens": 30, "prompt": prompt, "logprobs": 256}
        tokens, logprobs = _told(scan.choice(**body))
        uniforms = UniformStream(6).take(0, 30)
        pairs = zip(logprobs, uniforms, strict=True)
        expected = [int((_cumulative(row) < u).sum()) for row, u in pairs]
        drawn.append(np.mean(np.array(tokens) == expected))
    assert min(drawn) > 0.95


def test_a_session_online_never_draws_with_the_same_uniform_twice(scan: Service) -> None:
    model = scan.app.state.models["letters"]
    session = OnlineText(model, model.beginning(9))
    first = asyncio.run(_forward(session))
    assert len(first) == 30
    assert (np.concatenate(first) == UniformStream(9).take(0, 90)).all()


async def _forward(session: OnlineText) -> list[NDArray[np.float32]]:
    """The uniforms of thirty messages of three steps."""
    taken = []
    for _ in range(30):
        taken.append(session._noise(3)["uniform"].copy())
        session.steps += 3
    return taken
