"""The randomness of a draw: a counter-based generator, so any number of it can be had directly."""

import numpy as np
from numpy.random import Philox  # loaded now, and not by the first who draws
from numpy.typing import NDArray

LEAST_UNIFORM = 2.0**-24
_BLOCK = 4  # Philox 4x64 makes four words per counter value
# Making a generator asks the system for entropy, used or not: some 10 µs, a tenth of a step.
_AHEAD = 256


class UniformStream:
    """Uniforms in (0, 1) numbered from 0, keyed by a seed and the number of a choice.

    Philox 4x64-10 (Salmon et al. 2011). The same key and number give the same uniform wherever and
    in whatever portions they are asked for.
    """

    def __init__(self, seed: int, choice: int = 0) -> None:
        self._key = np.array([seed & 0xFFFFFFFFFFFFFFFF, choice], np.uint64)
        self._first = 0  # the number of the first of those made
        self._made = np.zeros(0, np.float32)

    def take(self, first: int, count: int) -> NDArray[np.float32]:
        """Uniforms number `first` to `first + count`, `(count,)`.

        Odd multiples of 2**-24: never 0, which would draw byte 0 however improbable it is.
        """
        if not self._first <= first <= first + count <= self._first + len(self._made):
            self._first, self._made = first, self._make(first, max(count, _AHEAD))
        start = first - self._first
        return self._made[start : start + count]

    def _make(self, first: int, count: int) -> NDArray[np.float32]:
        generator = Philox(key=self._key, counter=first // _BLOCK)
        skip = first % _BLOCK
        words = generator.random_raw(skip + count)[skip:]
        return ((words >> np.uint64(41)) * 2.0**-23 + LEAST_UNIFORM).astype(np.float32)


class InkNoise:
    """What a pen's steps need, numbered from 0: a uniform in (0, 1) and two standard normals each.

    Step number i is counter i of the generator of `UniformStream`: one word for the uniform, two
    for the normals (Box and Muller 1958).
    """

    def __init__(self, seed: int, choice: int = 0) -> None:
        self._uniforms = UniformStream(seed, choice)

    def take(self, first: int, count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Of steps `first` to `first + count`: uniforms `(count,)` and normals `(count, 2)`."""
        words = self._uniforms.take(first * _BLOCK, count * _BLOCK).reshape(count, _BLOCK)
        radius = np.sqrt(-2 * np.log(words[:, 1].astype(np.float64)))
        angle = 2 * np.pi * words[:, 2].astype(np.float64)
        normals = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return words[:, 0].copy(), normals.astype(np.float32)
