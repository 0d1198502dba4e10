"""The same seeded request gives the same ink alone, in company, streamed, continued, anywhere."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.golden import Arrays
from contract.ink import InkManifest
from contract.noise import InkNoise
from service.artifact import Artifact, load_artifact
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from service.ink.pen import LinePen, strokes
from service.ink.schemas import PageOptions
from tests.service.serving import on_cpu
from tests.service.writing import InkService, Strokes, online, strokes_of

_WAVE = [[x, 40 * np.sin(x / 9) + 60] for x in np.arange(0.0, 300.0, 1.5).tolist()]
_OWN = {"strokes": [_WAVE[:90], _WAVE[90:]], "text": "two waves"}
# One request per kind of hand; the lines are of many lengths.
_REQUESTS: list[dict[str, Any]] = [
    {"text": "an even keel"},
    {"text": "I\n\na second, longer line (no. 2)", "bias": 0, "style": "made-up"},
    {"text": "all of it in one hand: " * 4, "style": "upright", "bias": 2.5},
    {"text": "go on\nas I began", "style": _OWN, "line_height": 31.7, "width": 411},
]
_EVERY_REQUEST = pytest.mark.parametrize(
    "request_", [r | {"seed": 70 + i} for i, r in enumerate(_REQUESTS)], ids=range(len(_REQUESTS))
)


def _neighbours() -> list[dict[str, Any]]:
    """12 requests of other lengths, some that read strokes first, some that want their state."""
    return [
        {
            "text": "other words " * (1 + 3 * (i % 4)),
            "seed": i,
            "bias": [0, 0.5, 3][i % 3],
            "style": [None, "hasty", _OWN][i % 3],
            "format": ["json", "svg"][i % 2],
            "return_state": i % 4 == 0,
        }
        for i in range(12)
    ]


@_EVERY_REQUEST
def test_a_repeated_request_gives_the_same_ink(pen: InkService, request_: dict[str, Any]) -> None:
    ink = pen.strokes(**request_)
    assert sum(map(len, ink)) > 3
    assert pen.strokes(**request_) == ink
    assert pen.strokes(**request_ | {"seed": 1000}) != ink


@on_cpu
@_EVERY_REQUEST
def test_runner_slots_and_chunks_change_no_bit(
    ink: InkService, narrow: InkService, request_: dict[str, Any]
) -> None:
    here, there = (s.write(**request_, return_state=True) for s in (ink, narrow))
    assert here["lines"] == there["lines"]
    assert here["state"] == there["state"]
    assert here["style"] == there["style"]


def test_twelve_neighbours_change_no_bit(pen: InkService) -> None:
    requests = [body | {"seed": 70 + i} for i, body in enumerate(_REQUESTS)]
    alone = [pen.strokes(**request) for request in requests]
    with ThreadPoolExecutor(24) as pool:
        neighbours = [pool.submit(pen.post, **n) for n in _neighbours()]
        for _ in range(3):
            among = [pool.submit(pen.strokes, **request) for request in requests]
            assert [future.result() for future in among] == alone
        assert {future.result().status_code for future in neighbours} == {200}


@_EVERY_REQUEST
def test_a_stream_is_the_whole_ink_and_ends_in_its_state(
    pen: InkService, request_: dict[str, Any]
) -> None:
    body = request_ | {"return_state": True}
    whole = pen.write(**body)
    events = pen.events(**body)
    assert strokes_of(events) == [line["strokes"] for line in whole["lines"]]
    assert events[-1] == {"usage": whole["usage"], "state": whole["state"]}


@pytest.mark.parametrize("hand", [None, "made-up", "hasty", "lost"])
def test_lines_written_one_by_one_are_the_page(pen: InkService, hand: str | None) -> None:
    texts = ["one line", "and", "a third, which is longer"]
    look = {"bias": 0.3, "width": 2000}  # room for the widest hand
    begin: dict[str, Any] = {"seed": 4, "style": hand} | look
    if hand == "lost":  # its window never gets to the text, so its lines end by their length
        begin = {"state": pen.token(kappa=-1000, seed=4)} | look
    whole = pen.write(**begin, text="\n".join(texts), return_state=True)
    options = begin
    for number, text in enumerate(texts):
        # Empty lines put it where it stands on the page.
        part = pen.write(**options, text="\n" * number + text, return_state=True)
        assert part["lines"][-1] == whole["lines"][number]
        options = {"state": part["state"]} | look
    assert part["state"] == whole["state"]


def test_a_state_forks_and_rewinds(pen: InkService) -> None:
    state = pen.write(text="before", seed=1, return_state=True)["state"]
    one = pen.strokes(text="after", state=state)
    other = pen.strokes(text="after", state=state, seed=2)
    assert other != one
    assert pen.strokes(text="after", state=state) == one
    assert pen.strokes(text="after", state=state, seed=2) == other


def test_a_request_without_a_seed_tells_the_one_it_took(pen: InkService) -> None:
    one, other = (pen.write(text="chance") for _ in range(2))
    assert one["lines"] != other["lines"]
    assert pen.lines(text="chance", seed=one["seed"]) == one["lines"]


class _Hand:
    """A fresh hand that writes line after line with the graph alone, one step a call: the first
    makes it up, and every other begins where that one ended."""

    def __init__(self, artifact: Artifact, bias: float, seed: int) -> None:
        assert isinstance(artifact.manifest, InkManifest)
        self._units = artifact.manifest.ink.units_per_line
        self._runner = ScanRunner(artifact, Runtime("cpu", "scan", 1, 1))
        self._bias, self._noise, self._drawn = bias, InkNoise(seed), 0
        self._before, self._height = "", 0.0
        self._anchor = self._runner.read(0)
        self._lines = 0

    def write(self, text: str) -> Strokes:
        """The strokes of the next line, in px."""
        in_sight = self._before + text
        self._runner.load(0, self._anchor)
        offsets, state = self._draw(in_sight, 40 * len(text) + 100)
        self._drawn += len(offsets)
        shown = offsets.copy()
        if self._before:  # its first move is out of the line above
            shown[0, 0] = min(max(shown[0, 0] - 4, 0), 4)
            shown[0, 1] += np.float32(self._height)
        else:
            # What was written is forgotten but for its last character, with a space after it.
            self._anchor = state | {"kappa": state["kappa"] - np.float32(len(text) - 1)}
            y = offsets[:, 1].astype(np.float64).cumsum()[-60:]
            lows = [b for a, b, c in zip(y, y[1:], y[2:], strict=False) if b < a and b <= c]
            self._before, self._height = f"{text[-1]} ", float(y[-1] - np.median(lows))
        points = LinePen(PageOptions().layout(self._units, 1.0), self._lines).move(shown)
        self._lines += 1
        return [stroke.round(2).tolist() for stroke in strokes(points)]

    def _draw(self, text: str, most: int) -> tuple[np.ndarray, Arrays]:
        """The offsets `(n, 3)` up to the end of the text, and the state after the last."""
        symbols = np.zeros((1, 64), np.int64)
        symbols[0, : len(text)] = [ord(c) - 31 for c in text]
        bias = np.array([self._bias], np.float32)
        row = {"text": symbols, "length": np.array([len(text)]), "bias": bias}
        drawn: list[np.ndarray] = []
        while len(drawn) < most:
            before = self._runner.read(0)
            uniform, normal = self._noise.take(self._drawn + len(drawn), 1)
            steps = {
                "forced": np.zeros((1, 1, 3), np.float32),
                "force": np.zeros((1, 1), bool),
                "uniform": uniform[None],
                "normal": normal[None],
            }
            out = self._runner.run([0], steps, row, filtered=False)
            x = np.cumsum([0.0, *(float(point[0]) for point in drawn), out["drawn"][0, 0, 0]])
            if out["ended"][0, 0] and x[-1] > x[:-1].max() + 2:
                return np.stack(drawn), before
            drawn.append(out["drawn"][0, 0])
        return np.stack(drawn), self._runner.read(0)


@on_cpu
@pytest.mark.parametrize(
    ("texts", "bias"),
    [(["keel"], 0.0), (["Why, 12 of them?", "No:", "11, and (a) half"], 1.5)],
)
def test_a_page_is_what_the_graph_draws_step_by_step(
    pen: InkService, inks: Path, texts: list[str], bias: float
) -> None:
    hand = _Hand(load_artifact(inks / "scrawl"), bias, seed=9)
    expected = [hand.write(text) for text in texts]
    body = {"text": "\n".join(texts), "style": "made-up", "seed": 9}
    assert pen.strokes(**body, bias=bias) == expected
    assert pen.strokes(**body, bias=bias + 0.01) != expected


def test_a_session_stands_at_the_same_place_however_its_writing_is_divided(
    ink: InkService,
) -> None:
    places = []
    for parts in ([40], [13, 27], [1] * 40):
        with online(ink, model="scrawl", text="keel over", seed=3, origin=[10, 50]) as session:
            for count in parts:
                assert not session.ask(write=count)["ended"]
            token = session.ask(state=True)["state"]
        places.append(ink.model.codec.decode(token).edge.place)
    assert places[0] == places[1] == places[2]
