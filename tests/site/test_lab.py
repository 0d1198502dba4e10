"""What the Lab tab computes: normalised as by PyTorch, invariant as the laboratory finds it."""

import math

import numpy as np
import torch

from lab.analysis.invariance import (
    CHANGES,
    KINDS,
    LEAST_IF_NOT,
    MOST_IF_INVARIANT,
    WEIGHT_SCALE,
    Network,
    relative_change,
)
from lab.analysis.padding import Z, per_column, per_row
from tests.site.conftest import Ask


def _uniforms(seed: int, count: int) -> list[float]:
    """Those of mulberry32."""
    made = []
    for _ in range(count):
        seed = (seed + 0x6D2B79F5) % 2**32
        mixed = (seed ^ seed >> 15) * (seed | 1) % 2**32
        mixed ^= (mixed + (mixed ^ mixed >> 7) * (mixed | 61)) % 2**32
        made.append((mixed ^ mixed >> 14) / 2**32)
    return made


def _normals(seed: int, count: int) -> list[float]:
    """Those of the page: Box and Muller's, the cosines."""
    uniforms = iter(_uniforms(seed, 2 * count))
    return [
        math.sqrt(-2 * math.log(1 - radius)) * math.cos(2 * math.pi * angle)
        for radius, angle in zip(uniforms, uniforms, strict=True)
    ]


def _network(seed: int) -> Network:
    """The page's, of so many units, inputs and cases."""
    units, inputs, cases = 9, 12, 40
    drawn = torch.tensor(
        _normals(seed, inputs + units * (inputs + 2) + cases * inputs), dtype=torch.float64
    )
    sizes = (inputs, units * inputs, units, units, cases * inputs)
    mean, weight, gain, bias, data = torch.split(drawn, sizes)
    return Network(
        weight=WEIGHT_SCALE * weight.view(units, inputs),
        gain=1 + 0.2 * gain,
        bias=0.2 * bias,
        data=mean + data.view(cases, inputs),
    )


def test_how_far_a_change_moves_a_network_is_what_the_laboratory_finds(ask: Ask) -> None:
    """Of five networks that which moves least; a shift is drawn in another way."""
    (made,) = ask("normed", [{"rows": Z, "seed": 5}])
    compared = 0
    for row in made["table"]:
        change, paper = CHANGES[row["name"]]
        for entry, kind, holds in zip(row["entries"], KINDS, paper, strict=True):
            if holds or "re-centring" in row["name"]:
                continue
            moved = [relative_change(kind, _network(5 + n), change) for n in range(5)]
            np.testing.assert_allclose(entry["moved"], min(moved), rtol=1e-5)
            compared += 1
    assert compared == 4


def test_numbers_are_normalised_and_drawn_as_elsewhere(ask: Ask) -> None:
    cases = [{"rows": Z, "seed": seed} for seed in (1, 2)]
    first, second = ask("normed", cases)
    z = torch.tensor(Z, dtype=torch.float64)
    np.testing.assert_allclose(first["rows"], per_row(z), atol=1e-12)
    np.testing.assert_allclose(first["columns"], per_column(z), atol=1e-12)
    assert first["bounds"] == [MOST_IF_INVARIANT, LEAST_IF_NOT]
    assert first["kinds"] == [*KINDS]
    told = {row["name"]: tuple(e["paper"] for e in row["entries"]) for row in first["table"]}
    assert told == {change: paper for change, (_, paper) in CHANGES.items()}
    for made, case in ((first, cases[0]), (second, cases[1])):
        drawn = _normals(int(str(case["seed"])), 9)
        np.testing.assert_allclose(made["drawn"], drawn, atol=1e-12)
        for row in made["table"]:
            for entry, kind in zip(row["entries"], KINDS, strict=True):
                assert entry["kind"] == kind
                assert entry["invariant"] == entry["paper"], (row["name"], kind)
                moved, holds = entry["moved"], entry["paper"]
                assert moved <= MOST_IF_INVARIANT if holds else moved >= LEAST_IF_NOT
