"""What the manifest of a language model says beyond any other, and its row options."""

import math
from typing import Literal

from contract.alphabets import VOCABULARY
from contract.manifest import Manifest, Strict

# Row options that leave the model's own distribution as it is.
NEUTRAL = {
    "inverse_temperature": 1.0,
    "logit_bias": 0.0,
    "log_min_p": -math.inf,
    "top_k": VOCABULARY,
    "top_p": 1.0,
}
# Those of them that leave symbols out, which takes a graph of its own.
FILTERS = ("log_min_p", "top_k", "top_p")
# Temperature 0: the next float32 below the best logit becomes improbable beyond float32.
GREEDY = 2.0**60


class ByteAlphabet(Strict):
    """A token is a byte; the one that stands before the first is the state's initial token."""

    kind: Literal["bytes"] = "bytes"


class TextManifest(Manifest):
    """The manifest of a language model."""

    kind: Literal["language"] = "language"
    alphabet: ByteAlphabet = ByteAlphabet()
