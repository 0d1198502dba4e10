"""What a hand writes is as legible however its line lay on the page: read by Tesseract, if it is
installed.
"""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from contract.manifests import read_manifest
from lab.legibility.reading import NoReader, errors, overall, read, tesseract, tesseract_version
from service.http.exchange import Exchange
from service.ink.hands import read_strokes
from service.ink.line import InkLine, InkPiece
from service.ink.model import InkModel
from service.ink.schemas import StrokesWithText
from tests.service.serving import running, settings
from training.ink.line import Line
from training.ink.synthetic import synthetic_lines

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"
_TEXT = "the quick brown fox jumps over it"
_LINES = 8
_PAGES = {"level": (0.0, 1.0), "up": (8.0, 1.0), "down": (-8.0, 1.0), "small": (0.0, 0.3)}
_PAGES |= {"large": (0.0, 4.0)}


def _sent(line: Line, turn: float, scale: float) -> StrokesWithText:
    angle = np.radians(turn)
    matrix = scale * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    strokes = [((stroke @ matrix) * (1, -1)).round(3).tolist() for stroke in line.strokes]
    return StrokesWithText(text=line.text, strokes=strokes)


async def _write(model: InkModel, own: StrokesWithText) -> np.ndarray:
    hand, _ = await read_strokes(model, own)
    exchange: Exchange[InkPiece] = Exchange(streamed=False)
    exchange.jobs.append(InkLine(_TEXT, hand, model.manifest, exchange.sender(), bias=1.0))
    exchange.submit(model.engine)
    return np.concatenate([piece.offsets async for _, piece in exchange.pieces()])


@pytest.mark.long
def test_a_turned_or_scaled_line_gives_a_hand_as_legible() -> None:
    try:
        tesseract_version()
    except NoReader as error:
        pytest.skip(str(error))
    long = [line for line in synthetic_lines(200, seed=5) if 24 <= len(line.text) <= 40][:_LINES]
    assert read_manifest(_ARTIFACTS / "handwriting").kind == "handwriting"
    with running(settings(_ARTIFACTS)) as service:
        model = service.app.state.models["handwriting"]
        rates = {}
        for name, page in _PAGES.items():
            inks = [asyncio.run(_write(model, _sent(line, *page))) for line in long]
            found = [errors(_TEXT, text) for text in read(inks, tesseract)]
            rates[name] = overall(found).rate
    print({name: round(rate, 3) for name, rate in rates.items()})
    assert all(rate < rates["level"] + 0.1 for rate in rates.values()), rates
