"""How a byte is chosen."""

import math
from dataclasses import dataclass, field

import numpy as np

from contract.alphabets import VOCABULARY
from contract.golden import Arrays
from contract.text import GREEDY

# Below this a temperature is as good as this one, and its reciprocal still a float32.
_LEAST_TEMPERATURE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a byte is chosen; temperature 0 takes the most probable."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = VOCABULARY
    min_p: float = 0.0
    logit_bias: dict[int, float] = field(default_factory=dict)

    @property
    def filtered(self) -> bool:
        """Whether it needs the graph that can leave symbols out."""
        return self.top_p < 1 or self.top_k < VOCABULARY or self.min_p > 0

    def row(self) -> Arrays:
        """The row inputs of the graph."""
        greedy = self.temperature == 0
        inverse = GREEDY if greedy else 1 / max(self.temperature, _LEAST_TEMPERATURE)
        bias = np.zeros(VOCABULARY, np.float32)
        for token, value in self.logit_bias.items():
            bias[token] = value
        return {
            "inverse_temperature": np.array(inverse, np.float32),
            "logit_bias": bias,
            "log_min_p": np.array(math.log(self.min_p) if self.min_p else -math.inf, np.float32),
            "top_k": np.array(min(self.top_k, VOCABULARY), np.int64),
            "top_p": np.array(self.top_p, np.float32),
        }
