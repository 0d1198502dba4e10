"""What a load asks for, decided by a seed: when to send a request, and how long its answer is."""

import random
from collections.abc import Iterator
from typing import Literal

BYTES = 200
SHORTEST, LONGEST = 16, 400
MOST_ARRIVALS = 200_000
Lengths = Literal["fixed", "mixed"]


def schedule(rate_per_s: float, seconds: float, seed: int) -> list[float]:
    """Seconds from the start at which requests are meant to be sent; a Poisson process.

    Raises `ValueError` if more than 200,000 are to be expected.
    """
    if rate_per_s * seconds > MOST_ARRIVALS:
        raise ValueError(f"{rate_per_s}/s for {seconds} s; at most {MOST_ARRIVALS:,} arrivals")
    gaps = random.Random(seed)
    moments: list[float] = []
    moment = gaps.expovariate(rate_per_s)
    while moment < seconds:
        moments.append(moment)
        moment += gaps.expovariate(rate_per_s)
    return moments


def lengths_and_seeds(lengths: Lengths, seed: int) -> Iterator[tuple[int, int]]:
    """Bytes to write and seed of one request after the other: 200, or evenly from 16 to 400."""
    order = random.Random(seed)
    while True:
        size = BYTES if lengths == "fixed" else order.randint(SHORTEST, LONGEST)
        yield size, order.getrandbits(31)
