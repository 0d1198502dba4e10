"""A hand that is taken up stands at the end of what it wrote, and brings no randomness with it."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from service.ink import hands
from service.ink.line import InkEdge, at_end
from service.state import Moment
from tests.service.writing import InkService

_WAVE = [[x, 40 * np.sin(x / 9) + 60] for x in np.arange(0.0, 300.0, 1.5).tolist()]


def test_a_window_that_is_lost_is_brought_to_the_end_of_the_text_and_another_is_left() -> None:
    kappa = np.array([-30.0, -1.0, 0.25, 1.5, 40.0], np.float32)
    hand = Moment({"kappa": kappa, "h": np.ones(2)}, 7, 2, 9, InkEdge(context="k", height=3.0))
    again = at_end(hand)
    assert again.state["kappa"].tolist() == [-1.0, -1.0, 0.25, 1.5, 1.5]
    assert again.state["h"] is hand.state["h"]
    assert replace(again, state={}) == replace(hand, state={})


@pytest.mark.parametrize("text", ["an", "two waves of a pen on paper", "i" * 60])
def test_a_hand_read_from_strokes_has_its_window_at_the_end_of_their_text(
    ink: InkService, text: str
) -> None:
    body = {"strokes": [_WAVE[:90], _WAVE[90:]], "text": text}
    answer = ink.client.post("/v1/styles", json=body)
    assert answer.status_code == 200, answer.text
    moment = ink.model.codec.decode(answer.json()["style"])
    assert (moment.state["kappa"] >= -1.0).all()
    assert (moment.state["kappa"] <= 1.5).all()
    assert moment.edge.context == text[-1]


def test_a_hand_of_a_token_draws_with_the_requests_randomness_from_its_beginning(
    ink: InkService,
) -> None:
    token = ink.token(seed=1, choice=3, drawn=77)
    moment = asyncio.run(hands.hand_in(ink.model, token, 5))
    assert (moment.seed, moment.choice, moment.drawn) == (5, 0, 0)
    fresh = ink.token(seed=2)
    assert ink.strokes(text="ink", style=token, seed=5) == ink.strokes(
        text="ink", style=fresh, seed=5
    )
