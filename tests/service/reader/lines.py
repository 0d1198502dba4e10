"""Invented lines of ink in px, y down, and a service whose reader is `squint`."""

import numpy as np

from tests.service.serving import Service
from training.ink.synthetic import random_style, write

Strokes = list[list[list[float]]]
MODEL = "squint"


def line(text: str = "an even keel", seed: int = 1) -> Strokes:
    """A line of the synthetic pen, some 300 px wide, its left end at (40, 90)."""
    generator = np.random.default_rng(seed)
    strokes = write(text, random_style(generator), generator).strokes
    points = np.concatenate(strokes).astype(np.float64)
    px = 300 / np.ptp(points[:, 0])
    left = points[:, 0].min()
    return [((s - (left, 0)) * (px, -px) + (40, 90)).round(2).tolist() for s in strokes]


def points(strokes: Strokes) -> list[list[float]]:
    """The points `[x, y, up]` of strokes, in order."""
    return [[*p, float(i == len(s) - 1)] for s in strokes for i, p in enumerate(s)]


class ReaderService(Service):
    """The usual questions to it."""

    def post(self, **body: object) -> object:
        """The response to a request to read."""
        return self.client.post("/v1/read", json=body)

    def read(self, **body: object) -> dict:
        """The body of an answer that must be a success."""
        response = self.client.post("/v1/read", json=body)
        assert response.status_code == 200, response.text
        return response.json()
