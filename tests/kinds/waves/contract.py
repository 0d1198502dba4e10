"""What training and serving agree on about waves."""

from typing import Literal

import numpy as np

from contract.golden import Arrays
from contract.manifest import Manifest
from contract.noise import InkNoise


class WaveManifest(Manifest):
    """Says in which unit a wave is measured."""

    kind: Literal["waves"] = "waves"
    unit: str = "volt"


def noise(seed: int, first: int, count: int) -> Arrays:
    """A standard normal for each step."""
    _, normals = InkNoise(seed).take(first, count)
    return {"normal": np.ascontiguousarray(normals[:, :1])}
