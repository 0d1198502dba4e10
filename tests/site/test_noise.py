"""The randomness of the site: bit for bit that of the service."""

import base64

import numpy as np

from contract.noise import InkNoise, UniformStream
from tests.site.conftest import Ask

_CASES = 200
_EDGES = [0, 1, -1, 2**32, 2**53 - 1, -(2**53) + 1]


def _cases() -> list[dict[str, int]]:
    random = np.random.default_rng(16)
    seeds = [*_EDGES, *random.integers(0, 2**53, _CASES - len(_EDGES)).tolist()]
    return [
        {
            "seed": seed,
            "choice": int(random.integers(0, 4)),
            "first": int(random.integers(0, 5000)),
            "count": int(random.integers(1, 50)),
        }
        for seed in seeds
    ]


def _bytes(answer: str) -> bytes:
    return base64.b64decode(answer)


def test_the_same_seed_gives_the_same_bits(ask: Ask) -> None:
    cases = _cases()
    for case, answer in zip(cases, ask("noise", cases), strict=True):
        seed, choice, first, count = case.values()
        uniforms, normals = InkNoise(seed, choice).take(first, count)
        expected = UniformStream(seed, choice).take(first, count)
        assert _bytes(answer["uniforms"]) == expected.tobytes(), case
        assert _bytes(answer["ink"]) == uniforms.tobytes(), case
        assert _bytes(answer["normals"]) == normals.tobytes(), case
