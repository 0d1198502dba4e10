"""A handwriting model followed point by point, against the graph run over all of it."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from contract.golden import Arrays
from contract.mixture import LOG_SIGMA, STEEPEST_TILT, outputs_of
from contract.noise import InkNoise
from service.artifact import load_artifact
from service.engine.engine import Engine
from service.engine.given import GivenSteps, run_steps
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from service.errors import InvalidRequest
from service.ink.line import InkEdge, _height, on_its_line, row_of
from service.ink.online import InkOpening, InkSaid, OnlineInk, follow
from tests.artifacts import HANDS
from tests.service.writing import InkService, Session, online

_PX_PER_UNIT = 64 / 14
_TEXT = "keel over"


def test_a_line_is_as_long_as_the_window_is_with_what_stays_in_sight(ink: InkService) -> None:
    manifest = ink.model.manifest
    longest = manifest.alphabet.longest_text
    for edge, room in ((InkEdge(), longest), (InkEdge(context="a"), longest - 2)):
        assert row_of("e" * room, edge, manifest, bias=0.0)["length"] == longest
        with pytest.raises(InvalidRequest, match=f"text has {room + 1} characters"):
            row_of("e" * (room + 1), edge, manifest, bias=0.0)


@pytest.mark.parametrize(("dx", "shown"), [(-9.0, 0.0), (3.0, 0.0), (6.0, 2.0), (30.0, 4.0)])
def test_a_line_begins_at_its_left_end_or_a_space_from_it(dx: float, shown: float) -> None:
    """A space less than the hand's pen has moved from where its own ink ended."""
    ink = np.array([[dx, 1.0, 0], [5, 5, 1]], np.float32)
    line = on_its_line(ink, InkEdge(context="a", height=2.0))
    assert line.tolist() == [[shown, 3, 0], [5, 5, 1]]
    assert ink[0].tolist() == [dx, 1, 0]
    assert on_its_line(ink, InkEdge()).tolist() == ink.tolist()


@pytest.mark.parametrize(
    ("y", "height"),
    [([5, 3, 6], 3), ([5, 3, 6, 1, 4, 2, 7], 5), ([5, 3, 3, 6, 1, 4], 2), ([1, 2, 4], 3),
     ([7, 3], 0), ([], 0)],
    ids=str,
)  # fmt: skip
def test_the_end_of_ink_is_so_high_over_its_arcs_or_its_lowest_point(
    y: list[float], height: float
) -> None:
    """Two points say nothing of a line."""
    ink = np.zeros((len(y), 3), np.float32)
    ink[:, 1] = np.diff(y, prepend=0)
    assert _height(ink) == height


@pytest.mark.in_process
def test_what_is_shown_has_the_limits_of_what_is_drawn(ink: InkService) -> None:
    model = ink.model
    row = row_of("a", InkEdge(), model.manifest, bias=0.0)
    line = OnlineInk(model, model.fresh(0), row, _PX_PER_UNIT, [0.0, 0.0])
    raw = np.zeros(outputs_of(4))
    raw[13:17], raw[17:21], raw[21:] = -9, 9, 50  # log sigmas in x and y, tilts
    for shown in line._mixture(raw)["mixture"]:
        wide = (np.exp(LOG_SIGMA) * _PX_PER_UNIT).round(3).tolist()
        assert shown["sigma"] == wide
        assert shown["rho"] == pytest.approx(-np.tanh(STEEPEST_TILT), abs=1e-9)
    many = np.zeros(outputs_of(20))
    many[1:21] = np.arange(20)
    weights = [shown["weight"] for shown in line._mixture(many)["mixture"]]
    assert weights == sorted(weights, reverse=True)
    assert (len(weights), sum(weights) > 0.99) == (6, True)


def test_to_a_model_of_float32_a_point_may_be_as_far_away_as_it_is(ink: InkService) -> None:
    told = []
    for units in (256, 300):
        with online(ink, model="scrawl", text=_TEXT, seed=1) as session:
            session.ask(point=[0, 0, 0])
            told.append(session.ask(point=[units * _PX_PER_UNIT, 0, 0])["pen_up"])
    assert told[0] != told[1]


def test_a_pen_is_up_wherever_a_tablet_does_not_say_0(ink: InkService) -> None:
    told = []
    for up in (1.0, 0.25):
        with online(ink, model="scrawl", text=_TEXT, seed=1) as session:
            told.append(session.ask(point=[9, 9, up]))
    assert told[0] == told[1]


def test_a_token_knows_how_far_right_of_its_pen_the_ink_goes(ink: InkService) -> None:
    """By which the end of a text is told, whether its ink was read or written."""

    at, token = [0.0], None
    for said in ([10, 90, 40], [60], 1, 3, [200, 150], 1):
        opening = {"seed": 3, "origin": [0, 50]} if token is None else {"state": token}
        with online(ink, model="scrawl", text=_TEXT, **opening) as session:
            if isinstance(said, int):
                at += [x for x, *_ in session.ask(write=said)["points"]]
            else:
                for x in said:
                    session.ask(point=[x, 50, 0])
                at += said
            token = session.ask(state=True)["state"]
        reach = ink.model.codec.decode(token).edge.reach
        assert reach * _PX_PER_UNIT == pytest.approx(max(at) - at[-1], abs=0.1)


def test_a_state_knows_the_place_of_its_pen(ink: InkService) -> None:
    """Whoever goes on opens a session as before, and may give any `origin` beside a place."""
    with online(ink, model="scrawl", text=_TEXT, seed=3, origin=[0, 50]) as session:
        session.ask(point=[30, 50, 0])
        token = session.ask(state=True)["state"]
        expected = session.ask(write=3)["points"]
    for origin in ([0, 50], [500, 500], None):
        with online(ink, model="scrawl", text=_TEXT, state=token, origin=origin) as session:
            assert session.ask(write=3)["points"] == expected


def test_a_hand_taken_from_a_session_is_on_no_page_yet(ink: InkService) -> None:
    hand = ink.token(seed=5)
    with online(ink, model="scrawl", text=_TEXT, style=hand, origin=[5, 5]) as session:
        placed = session.ask(state=True)["state"]
    written = []
    for style in (hand, placed):
        opening = {"text": _TEXT, "seed": 3, "style": style, "origin": [90, 110]}
        with online(ink, model="scrawl", **opening) as session:
            written.append(session.ask(write=3)["points"])
    assert written[0] == written[1]


def test_after_a_page_nobody_knows_where_a_session_was_before_it(ink: InkService) -> None:
    """A page that goes on from a session's token has a token of its own, without that place."""
    written = []
    for origin in ([5, 5], None):
        opening = {"text": _TEXT, "style": HANDS[0], "seed": 5, "origin": origin}
        with online(ink, model="scrawl", **opening) as session:
            placed = session.ask(state=True)["state"]
        after = ink.write(text=_TEXT, state=placed, return_state=True)["state"]
        with online(ink, model="scrawl", text=_TEXT, state=after, origin=[90, 110]) as session:
            written.append(session.ask(write=3)["points"])
    assert written[0] == written[1]


def test_a_session_may_go_on_with_other_randomness(ink: InkService) -> None:
    written = []
    for seed in (5, 6, 5):
        opening = {"text": _TEXT, "state": ink.token(seed=5), "seed": seed}
        with ink.client.websocket_connect("/v1/online") as socket:
            session = Session(socket)
            assert session.ask(model="scrawl", **opening)["seed"] == seed
            written.append(session.ask(write=9)["points"])
    assert written[0] == written[2] != written[1]


def test_a_session_writes_as_freely_as_the_model_does_if_it_does_not_say_how() -> None:
    opening = InkOpening.model_validate({"model": "scrawl"})
    assert (opening.bias, opening.line_height) == (0, 64)


def test_as_much_is_written_at_once_as_a_message_may_ask_for() -> None:
    assert InkSaid.model_validate({"write": 4096}).write == 4096
    for count in (0, 4097):
        with pytest.raises(ValidationError):
            InkSaid.model_validate({"write": count})


@pytest.mark.in_process
def test_a_hand_comes_to_its_line_from_a_space_before_it(ink: InkService) -> None:
    model, hand = ink.model, ink.model.styles["hasty"]
    row = row_of("a", hand.edge, model.manifest, bias=0.0)
    line = OnlineInk(model, hand, row, _PX_PER_UNIT, [100.0, 50.0])
    assert line._at is not None
    before = [100 - 4 * _PX_PER_UNIT, 50 - hand.edge.height * _PX_PER_UNIT]
    assert line._at.tolist() == pytest.approx(before)


def _points(count: int = 25, seed: int = 3) -> list[list[float]]:
    """Points `[x, y, up]` of a page, in quarters of a px."""
    random = np.random.default_rng(seed)
    places = (random.normal((2, 0), 8, (count, 2)).cumsum(0) * 4).round() / 4 + 100
    return [[x, y, float(i % 6 == 5)] for i, (x, y) in enumerate(places.tolist())]


def _all_at_once(inks: Path, points: list[list[float]], scale: float, bias: float = 0) -> Arrays:
    """What the graph puts out at each step when it reads all points, the first at the origin."""
    artifact = load_artifact(inks / "scrawl")
    runner = ScanRunner(artifact, Runtime("cpu", "scan", 1, 1))
    places = np.array(points)
    offsets = np.diff(places[:, :2], axis=0, prepend=places[:1, :2]) / (scale, -scale)
    steps = len(points) + 1
    forced = np.zeros((steps, 1, 3), np.float32)
    forced[:-1, 0] = np.concatenate([offsets, places[:, 2:]], axis=1)
    uniforms, normals = InkNoise(7).take(0, steps)
    text = np.zeros((1, 64), np.int64)
    text[0, : len(_TEXT)] = [ord(c) - 31 for c in _TEXT]
    row = {"text": text, "length": np.array([len(_TEXT)]), "bias": np.full(1, bias, np.float32)}
    step = {
        "forced": forced,
        "force": np.arange(steps)[:, None] < steps - 1,
        "uniform": uniforms[:, None],
        "normal": normals[:, None],
    }
    return {n: a[:, 0] for n, a in runner.run([0], step, row, filtered=False).items()}


def _gaussians(raw: np.ndarray) -> dict[str, np.ndarray]:
    """A plain reading of raw outputs (Graves 2013, eq. 18-22), in units with y up."""
    weight, x, y, sx, sy, tilt = raw[1:].astype(np.float64).reshape(6, 4)
    weight = np.exp(weight) / np.exp(weight).sum()
    sigma = np.exp(np.stack([sx, sy], 1))
    return {"weight": weight, "mean": np.stack([x, y], 1), "sigma": sigma, "rho": np.tanh(tilt)}


def test_ink_sent_point_by_point_is_the_graph_over_all_points(pen: InkService, inks: Path) -> None:
    points = _points()
    outputs = _all_at_once(inks, points, _PX_PER_UNIT)
    with online(pen, model="scrawl", text=_TEXT, seed=7) as session:
        answers = [session.ask(point=point) for point in points]
    assert [answer["step"] for answer in answers] == list(range(2, len(points) + 2))
    assert len({answer["character"] for answer in answers}) > 2
    for i, answer in enumerate(answers):
        truth = _gaussians(outputs["mixture"][i + 1])
        order = np.argsort(-truth["weight"])
        page = np.array([_PX_PER_UNIT, -_PX_PER_UNIT])
        assert answer["character"] == outputs["character"][i + 1]
        pen_up = 1 / (1 + np.exp(-float(outputs["mixture"][i + 1, 0])))
        assert answer["pen_up"] == pytest.approx(pen_up, abs=1e-6)
        for found, m in zip(answer["mixture"], order, strict=True):
            assert found["weight"] == pytest.approx(truth["weight"][m], abs=1e-6)
            mean = np.array(points[i][:2]) + truth["mean"][m] * page
            assert found["mean"] == pytest.approx(mean.tolist(), abs=0.005 + 1e-4)
            sigma = truth["sigma"][m] * _PX_PER_UNIT
            assert found["sigma"] == pytest.approx(sigma.tolist(), abs=0.0005 + 1e-5)
            assert found["rho"] == pytest.approx(-truth["rho"][m], abs=1e-6)


def test_other_points_have_another_mixture(ink: InkService) -> None:
    with online(ink, model="scrawl", text=_TEXT) as session:
        one = [session.ask(point=point) for point in ([0, 0, 0], [9, 9, 0])][-1]
    with online(ink, model="scrawl", text=_TEXT) as session:
        other = [session.ask(point=point) for point in ([0, 0, 0], [9, 9, 1])][-1]
    assert other["mixture"] != one["mixture"]


def test_ink_that_is_written_is_what_the_graph_draws(pen: InkService, inks: Path) -> None:
    points = _points(6)
    outputs = _all_at_once(inks, points, _PX_PER_UNIT, bias=0.5)
    with online(pen, model="scrawl", text=_TEXT, seed=7, bias=0.5) as session:
        for point in points:
            session.ask(point=point)
        ((x, y, up),) = session.ask(write=1)["points"]
    dx, dy, drawn_up = outputs["drawn"][-1].tolist()
    assert (x - points[-1][0]) / _PX_PER_UNIT == pytest.approx(dx, abs=0.002)
    assert (points[-1][1] - y) / _PX_PER_UNIT == pytest.approx(dy, abs=0.002)
    assert up == drawn_up


@pytest.mark.parametrize("text", [_TEXT, "I"])  # the latter ends in the first steps that are made
@pytest.mark.parametrize("portions", [(400,), (1, 2, 397), (20, 5, 375)])
def test_a_text_written_online_is_a_line_of_a_page(
    pen: InkService, portions: tuple[int, ...], text: str
) -> None:
    body = {"text": text, "seed": 4, "bias": 0.5}
    events = pen.events(**body, style="made-up")
    whole = [point for event in events for point in event.get("points", [])]
    origin = [32, 32 + 0.7 * 64]
    written: list[list[float]] = []
    with online(pen, model="scrawl", **body, origin=origin) as session:
        for count in portions:
            answer = session.ask(write=count)
            written += answer["points"]
            if answer["ended"]:
                break
            assert len(answer["points"]) == count
    assert answer["ended"]
    assert [up for *_, up in written] == [up for *_, up in whole]
    # A page's pen keeps to the line by moving up and down; what goes across is the model's.
    assert np.abs(np.subtract([p[0] for p in written], [p[0] for p in whole])).max() <= 0.02


def test_after_the_end_of_a_text_few_steps_are_made_and_nothing_is_written(pen: InkService) -> None:
    opening = {"model": "scrawl", "text": _TEXT, "seed": 4, "bias": 0.5}
    with online(pen, **opening) as session:
        once = session.ask(write=400)
        token = session.ask(state=True)["state"]
    with online(pen, **opening) as session:
        answer = session.ask(write=4000)
        assert answer == once
        assert answer["ended"]
        assert answer["step"] <= len(answer["points"]) + 64 + 1
    refused = pen.client.post("/v1/handwriting", json={"text": "a", "state": token})
    assert refused.status_code == 400
    assert "state is of a text that has ended" in refused.json()["error"]["message"]
    for name, asked in (("write", 1), ("point", [1, 2, 0])):
        with online(pen, model="scrawl", text=_TEXT, state=token) as session:
            error = session.ask(**{name: asked})["error"]
        assert (error["param"], error["message"][:18]) == (name, "the text has ended")


@pytest.mark.in_process
def test_a_session_as_it_stood_is_not_where_it_has_gone(pen: InkService) -> None:
    async def reaches() -> list[float]:
        session = await follow(pen.app.state.models["scrawl"], InkOpening(model="scrawl", text="a"))
        before = session.standing()
        for x in (0.0, 500.0, 0.0):
            await session.read((x, 0.0, 0.0))
        return [one._edge().model_dump()["reach"] for one in (before, session)]

    assert pen.client.portal is not None
    stood, stands = pen.client.portal.call(reaches)
    assert stood == 0 < stands


def test_what_has_begun_to_write_is_refused_no_more(
    pen: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool]] = []

    async def noted(engine: Engine, jobs: list[GivenSteps], *, admitted: bool) -> None:
        asked.append((jobs[0].steps_wanted(), admitted))
        await run_steps(engine, jobs, admitted=admitted)

    monkeypatch.setattr("service.online.run_steps", noted)
    monkeypatch.setattr(Engine, "run_now", lambda engine, job: False)
    with online(pen, model="scrawl", text=_TEXT * 4, seed=4) as session:
        assert len(session.ask(write=150)["points"]) == 150
    assert asked == [(65, False), (64, True), (22, True)]


def test_a_page_twice_as_large_shows_the_same_twice_as_large(ink: InkService) -> None:
    answers = []
    for scale in (1, 2):
        opening = {"model": "scrawl", "text": _TEXT, "line_height": 32 * scale, "seed": 7}
        with online(ink, **opening, origin=[90 * scale, 110 * scale]) as session:
            for x, y, up in _points():
                answer = session.ask(point=[x * scale, y * scale, up])
            wrote = session.ask(write=9)
            answers.append((answer, wrote))
    (small, wrote_small), (large, wrote_large) = answers
    assert small["pen_up"] == large["pen_up"]
    for one, two in zip(small["mixture"], large["mixture"], strict=True):
        assert (one["weight"], one["rho"]) == (two["weight"], two["rho"])
        assert two["mean"] == pytest.approx([2 * c for c in one["mean"]], abs=0.016)
        assert two["sigma"] == pytest.approx([2 * c for c in one["sigma"]], abs=0.0016)
    for point, twice in zip(wrote_small["points"], wrote_large["points"], strict=True):
        assert twice[:2] == pytest.approx([2 * c for c in point[:2]], abs=0.016)


def test_where_the_page_lies_does_not_matter(ink: InkService) -> None:
    answers = []
    for moved in (0, 512):
        with online(ink, model="scrawl", text=_TEXT, seed=7) as session:
            for x, y, up in _points(9):
                answer = session.ask(point=[x + moved, y - moved, up])
        answers.append(answer)
    here, there = answers
    assert here["pen_up"] == there["pen_up"]
    for one, other in zip(here["mixture"], there["mixture"], strict=True):
        assert other["mean"] == pytest.approx([one["mean"][0] + 512, one["mean"][1] - 512])


def test_a_hand_can_be_followed(ink: InkService) -> None:
    answers = []
    for style in (None, "upright", "hasty"):
        with online(ink, model="scrawl", text="a word", style=style) as session:
            answers.append(session.ask(point=[5, 5, 0])["mixture"])
    assert answers[0] != answers[1] != answers[2] != answers[0]


def test_a_text_of_two_lines_is_written_as_one(pen: InkService) -> None:
    answers = []
    for text in ("keel\nover", "keel over"):
        with online(pen, model="scrawl", text=text, seed=4) as session:
            answers.append(session.ask(write=40))
    assert answers[0] == answers[1]


def test_a_session_is_in_one_hand(ink: InkService) -> None:
    with online(ink) as session:
        error = session.ask(model="scrawl", style="hasty", state=ink.token())["error"]
        assert (error["type"], error["param"]) == ("invalid_request_error", "style")
        assert session.closed() == 1008


def test_a_seed_that_is_made_up_is_a_number_of_every_client(ink: InkService) -> None:
    """In JavaScript whole numbers end at 2 ** 53."""
    seeds = []
    for _ in range(8):
        with online(ink) as session:
            seeds.append(session.ask(model="scrawl", text="a")["seed"])
    assert len({*seeds}) == 8
    assert max(seeds) < 2**53
    with online(ink) as session:
        assert session.ask(model="scrawl", text="a", seed=0)["seed"] == 0
