"""The randomness of a request: a counter-based generator, so any draw can be had by its number."""

import numpy as np
from numpy.typing import NDArray

LEAST_UNIFORM = 2.0**-24
_BLOCK = 4  # Philox 4x64 makes four words per counter value


class UniformStream:
    """Uniforms in (0, 1) numbered from 0, keyed by a seed and the number of a choice.

    Philox 4x64-10 (Salmon et al. 2011). The same key and number give the same uniform wherever and
    in whatever portions they are asked for.
    """

    def __init__(self, seed: int, choice: int = 0) -> None:
        self._key = np.array([seed & 0xFFFFFFFFFFFFFFFF, choice], np.uint64)

    def take(self, first: int, count: int) -> NDArray[np.float32]:
        """Uniforms number `first` to `first + count`, `(count,)`.

        Odd multiples of 2**-24: never 0, which would draw byte 0 however improbable it is.
        """
        generator = np.random.Philox(key=self._key, counter=first // _BLOCK)
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
