"""The best of several draws of each word: beside a naive search that takes one step at a time."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.ending import Ending
from contract.golden import Arrays
from contract.noise import InkNoise
from service.artifact import load_artifact
from service.engine.jobs import FinishReason
from service.engine.runners import ScanRunner, stack_rows
from service.engine.runtime import Runtime
from service.ink.best import LEAST_LEGIBLE, Judgement, best_of, parts_of
from service.ink.curve import DECIMALS
from service.ink.line import Begun, InkLine, InkPiece, in_sight, on_its_line, row_of
from service.ink.model import stored_hands
from service.ink.pen import LinePen, strokes
from service.ink.schemas import HandwritingRequest
from tests.artifacts import HANDS
from tests.service.ink.conftest import Judge
from tests.service.serving import on_cpu
from tests.service.writing import InkService, Strokes

_TEXT = "an even keel is all we want"
_BY_WORD = {"best_of": 4, "best_by": "word", "width": 2000}
_DRAWS = 4
_NO_POINT = np.zeros((1, 3), np.float32)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("word", ["word"]),
        ("two words", ["two words"]),
        ("eight words", ["eight ", "words"]),
        ("a b c d e f g", ["a b c ", "d e f ", "g"]),
        ("an even keel", ["an even ", "keel"]),
        ("of it", ["of it"]),
    ],
)
def test_parts_begin_with_words_and_are_not_too_short(text: str, parts: list[str]) -> None:
    ends = parts_of(text)
    assert [text[a:b] for a, b in zip([0, *ends], ends, strict=False)] == parts


# A last part of one or two letters is often over in the chunk in which the part before it is.
@on_cpu
@pytest.mark.parametrize("text", [_TEXT, "ship in a", "what all of", "keels I"])
@pytest.mark.parametrize("seed", range(3))
def test_each_word_is_the_best_of_what_may_follow_the_best_before(
    ink: InkService, inks: Path, judged: Judge, text: str, seed: int
) -> None:
    (line,) = ink.lines(text=text, seed=seed, style=HANDS[0], **_BY_WORD)
    drawn, numbers, legibility = _searched(inks / "scrawl", text, seed, judged)
    assert len(numbers) == len(parts_of(text)) > 1
    assert line["candidates"] == numbers
    assert line["strokes"] == drawn
    assert line["legibility"] == pytest.approx(legibility, abs=1e-4)


def _searched(
    artifact: Path, text: str, seed: int, judged: Judge
) -> tuple[list[Any], list[int], float]:
    """The strokes of a line in px, whose draw each part is, and how legible it is."""
    loaded = load_artifact(artifact)
    manifest: Any = loaded.manifest
    hand = replace(stored_hands(loaded, manifest)[HANDS[0]], seed=seed)
    search = _Search(
        ScanRunner(loaded, Runtime("cpu", "scan", 1, _DRAWS)),
        stack_rows([row_of(text, hand.edge, manifest, 1.0)] * _DRAWS, axis=0),
        [InkNoise(seed, number) for number in range(_DRAWS)],
        hand.drawn,
        len(in_sight(text, hand.edge)) - len(text),
        40 * len(text) + 100,
    )
    layout = HandwritingRequest(text=text, width=2000).layout(
        manifest.ink.units_per_line, hand.edge.advance or manifest.ink.units_per_character
    )
    ink, state, numbers, legibility = np.zeros((0, 3), np.float32), hand.state, [], 0.0
    shown: list[Any] = []
    for until in parts_of(text):
        draws = search.draws(ink, state, until)
        pens = [LinePen(layout, 0).move(on_its_line(one, hand.edge)) for one, _ in draws]
        inks = [[part.tolist() for part in strokes(pen.round(DECIMALS))] for pen in pens]
        judgements = [judged(text[:until].rstrip(), its) for its in inks]
        best = max(range(_DRAWS), key=lambda number: (judgements[number][1], -number))
        numbers.append(best)
        (ink, state), shown, legibility = draws[best], inks[best], judgements[best][0]
    return shown, numbers, legibility


@dataclass(frozen=True)
class _Search:
    """Draws of a line whose window begins `before` its text, a step at a time."""

    runner: ScanRunner
    row: Arrays
    noises: list[InkNoise]
    begun: int
    before: int
    most: int

    def draws(
        self, ink: np.ndarray, state: Arrays, until: int | None
    ) -> list[tuple[np.ndarray, Arrays]]:
        """Of each draw that goes on from `ink (n, 3)` and its state, its ink and state where the
        window has come to the place `until`, or at the end of the line."""
        drawn, states = [ink] * _DRAWS, [[state] for _ in range(_DRAWS)]
        rules = [Ending() for _ in range(_DRAWS)]
        for rule in rules:
            rule.follow(ink)
        left = {*range(_DRAWS)}
        while left:
            some = sorted(left)
            assert max(len(drawn[number]) for number in some) < self.most, "a draw is lost"
            for number, out in self._step(some, drawn, states):
                if rules[number].first(out["ended"], out["drawn"]) is not None:
                    left.remove(number)
                elif until is not None and out["character"][0] - self.before >= until:
                    if len(drawn[number]) - len(ink) > 1:  # that point is the next part's
                        drawn[number] = drawn[number][:-1]
                        states[number].pop()
                    left.remove(number)
                else:
                    drawn[number] = np.concatenate([drawn[number], out["drawn"]])
                    rules[number].follow(out["drawn"])
                    states[number].append(self.runner.read(number))
        return [(one, its[-1]) for one, its in zip(drawn, states, strict=True)]

    def _step(
        self, some: list[int], drawn: list[np.ndarray], states: list[list[Arrays]]
    ) -> list[tuple[int, Arrays]]:
        """What a step of some of the draws gives each, `(1, ...)`."""
        for number in some:
            self.runner.load(number, states[number][-1])
        steps = [_step(self.noises[n], self.begun + len(drawn[n])) for n in some]
        rows = {name: array[some] for name, array in self.row.items()}
        out = self.runner.run(some, stack_rows(steps, axis=1), rows, filtered=False)
        return [
            (number, {name: array[:, place] for name, array in out.items()})
            for place, number in enumerate(some)
        ]


def _step(noise: InkNoise, at: int) -> Arrays:
    """The inputs of a step that is drawn."""
    uniforms, normals = noise.take(at, 1)
    drawn = {"forced": _NO_POINT, "force": np.zeros(1, bool)}
    return {"uniform": uniforms, "normal": normals} | drawn


def test_a_line_of_one_word_is_the_best_draw_of_the_line(ink: InkService) -> None:
    for seed in range(4):
        body = {"text": "keel", "seed": seed, "width": 2000, "best_of": 4}
        (whole,), (word,) = ink.lines(**body), ink.lines(**body, best_by="word")
        assert word["candidates"] == [whole.pop("candidate")]
        assert {name: word[name] for name in whole} == whole


@on_cpu
@pytest.mark.parametrize("hand", ["made-up", "hasty"])
def test_slots_chunks_runner_and_streaming_change_nothing(
    ink: InkService, narrow: InkService, hand: Any
) -> None:
    text = "one and another\n\nand after that a third\nand that is it\nor is a\nman I"
    body = {"text": text, "seed": 8, "style": hand, "return_state": True} | _BY_WORD
    here, there = (service.write(**body) for service in (ink, narrow))
    assert here["lines"] == there["lines"]
    assert here["state"] == there["state"]
    assert here["usage"] == there["usage"]
    assert ink.streamed_strokes(**body) == [line["strokes"] for line in here["lines"]]
    _, *events, last = narrow.events(**body)
    assert last == {"usage": here["usage"], "state": here["state"]}
    ends = [event for event in events if "finish_reason" in event]
    assert [end.get("candidates") for end in ends] == [
        line.get("candidates") for line in here["lines"]
    ]


def test_a_page_goes_on_after_any_of_its_lines(pen: InkService) -> None:
    body = {"text": "some of it now\nand the rest later", "seed": 3} | _BY_WORD
    _, *events, _ = pen.events(**body, resume=True)
    ends = [event for event in events if "finish_reason" in event]
    again = pen.events(**body | ends[0]["resume"])
    mine = [event.get("points") for event in events if event["line"] == 1]
    assert mine == [event.get("points") for event in again[1:-1]]


@pytest.mark.parametrize("text", ["lost from the first word", "lost"])
def test_a_part_that_is_lost_ends_its_line_unreadably(pen: InkService, text: str) -> None:
    lost = {"text": f"{text}\nand the next", "state": pen.token(kappa=-1000.0), "seed": 4}
    page = pen.write(**lost, **_BY_WORD, return_state=True)
    first, _ = page["lines"]
    assert (first["finish_reason"], first["legibility"]) == ("unreadable", -99.0)
    assert len(first["candidates"]) == 1
    # The page goes on behind it, as it does behind a line that is drawn once and lost.
    drawn = sum(map(len, first["strokes"]))
    assert pen.model.codec.decode(page["state"]).drawn > drawn > 40 * len(text.split()[0])
    assert page == pen.write(**lost, **_BY_WORD, return_state=True) | {
        name: page[name] for name in ("id", "created")
    }


def test_all_draws_of_all_words_are_work(pen: InkService) -> None:
    def counted() -> list[float]:
        names = ("generation_tokens_total", "prompt_tokens_total")
        return [pen.metric(name, model="scrawl") for name in names]

    before = counted()
    usage = pen.write(text=_TEXT, seed=3, **_BY_WORD)["usage"]
    points, characters = (a - b for a, b in zip(counted(), before, strict=True))
    assert usage == {"characters": len(_TEXT), "points": points}
    assert characters == _DRAWS * len(_TEXT)  # as where lines are chosen


def test_one_draw_is_not_chosen_by_words(ink: InkService) -> None:
    refused = ink.post(text="a", best_by="word")
    assert refused.status_code == 400
    assert "best_by" in refused.json()["error"]["message"]


def test_a_part_takes_no_longer_than_its_own_characters_may(ink: InkService) -> None:
    model = ink.model
    whole, part = (
        InkLine(_TEXT, model.styles["hasty"], model.manifest, lambda piece: None, until=until)
        for until in (None, 8)
    )
    assert (whole.steps_expected(), part.steps_expected()) == (10 * len(_TEXT), 80)


@pytest.mark.parametrize(
    ("ink_points", "begun_until", "until", "steps"),
    [
        (0, 0, 8, 80),  # as most hands are
        (40, 8, 14, 5 * 6 + 2),  # two points are drawn again
        (200, 8, 14, 25 * 6 + 2),
        (40, 8, 9, 8),  # if not there yet, it is soon
        (650, 8, 14, 40 * 14 + 100 - 648),  # nearly lost
    ],
)
def test_a_part_runs_to_where_the_pace_of_its_line_so_far_has_its_end(
    ink: InkService, ink_points: int, begun_until: int, until: int, steps: int
) -> None:
    """What runs beyond is drawn for nothing, and ten chunks for one take ten times as long."""
    model, so_far = ink.model, np.zeros((ink_points, 3), np.float32)
    begun = Begun(so_far, {}, ink_points - 2, begun_until) if ink_points else None
    hand, told = model.styles["hasty"], list[InkPiece]()
    part = InkLine(_TEXT, hand, model.manifest, told.append, begun=begun, until=until)
    assert part.steps_wanted() == steps


@pytest.mark.parametrize(
    ("characters", "points"), [([1, 2, 2], 1), ([1, 1, 2], 1), ([1, 1, 1, 2], 2)]
)
def test_a_part_gives_its_last_point_to_the_next_word_unless_it_has_no_other(
    ink: InkService, characters: list[int], points: int
) -> None:
    """Whichever chunk that was in, so nothing is told before."""
    model, pieces = ink.model, list[InkPiece]()
    part = InkLine("a b", model.fresh(1), model.manifest, pieces.append, until=2)
    for chunk in filter(len, (characters[:3], characters[3:])):
        assert not pieces
        drawn = {
            "drawn": np.zeros((len(chunk), 3), np.float32),
            "ended": np.zeros(len(chunk), bool),
        }
        ended = part.accept(drawn | {"character": np.array(chunk)})
        part.publish()
    assert (ended, part.written) == (True, points)


def test_a_line_is_over_to_the_right_of_the_ink_of_all_its_words(ink: InkService) -> None:
    """Where the pen has gone back in the word before, what it draws there is no end."""
    model, so_far = ink.model, np.array([[9, 0, 0], [-8, 0, 1]], np.float32)
    begun = Begun(so_far, {}, len(so_far), until=2)
    part = InkLine("a b", model.fresh(1), model.manifest, lambda piece: None, begun=begun)
    drawn = {
        "drawn": np.array([[3, 0, 1], [3, 0, 1], [5, 0, 1]], np.float32),
        "ended": np.ones(3, bool),
        "character": np.full(3, 2),
    }
    assert part.accept(drawn)
    assert part.written == 2  # at 6 of the 8 units; it is over at 11


class _Told:
    """An exchange whose pieces have come: how each of the draws ended."""

    def __init__(self, *reasons: FinishReason) -> None:
        self.jobs = [None] * len(reasons)
        self._reasons = reasons

    async def pieces(self) -> AsyncGenerator[tuple[int, InkPiece]]:
        for number, reason in enumerate(self._reasons):
            offsets = np.full((3, 3), number, np.float32)
            yield number, InkPiece(reason, offsets=offsets, characters=np.zeros(3, np.int64))


class _Prefers:
    """A judge to whom the first draws are the likeliest."""

    def __init__(self) -> None:
        self.asked = 0

    async def judge(self, text: str, line: Strokes) -> Judgement:
        self.asked += 1
        return Judgement(-self.asked, -self.asked)


@pytest.mark.parametrize(
    ("part", "reasons", "best", "asked"),
    [
        (True, ("length", "stop", "stop"), 1, 2),
        (True, ("length", "length"), 0, 0),
        (False, ("length", "stop", "stop"), 0, 3),  # a whole line is judged by what is there
    ],
)
def test_a_part_that_is_lost_is_worse_than_any_that_ended(
    part: bool, reasons: tuple[FinishReason, ...], best: int, asked: int
) -> None:
    layout = HandwritingRequest(text="a").layout(8.0, 3.0)
    before = InkPiece() if part else None
    exchange, judge = _Told(*reasons), _Prefers()
    arguments: Any = (exchange, "a", layout, 0, judge, before)
    kept = asyncio.run(best_of(*arguments))
    assert (kept.number, judge.asked) == (best, asked)
    assert (kept.piece.offsets == best).all()
    assert (kept.legibility == LEAST_LEGIBLE) == (asked == 0)


class _SeesNothing:
    """A judge to whom no ink says anything."""

    async def judge(self, text: str, line: Strokes) -> Judgement:
        return Judgement(-np.inf, -np.inf)


def test_of_draws_that_are_equal_the_first_is_kept_and_none_is_worse_than_can_be_told() -> None:
    layout = HandwritingRequest(text="a").layout(8.0, 3.0)
    arguments: Any = (_Told("stop", "stop", "stop"), "a", layout, 0, _SeesNothing())
    kept = asyncio.run(best_of(*arguments))
    assert (kept.number, kept.legibility) == (0, LEAST_LEGIBLE)


class _Reads:
    """A judge that notes what it is asked about."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def judge(self, text: str, line: Strokes) -> Judgement:
        self.texts.append(text)
        return Judgement(-8.0, -8.0)


@pytest.mark.parametrize(("until", "said"), [(4, "tre"), (None, "tre words")])
def test_a_part_is_judged_by_its_own_letters_and_by_each_of_them(
    until: int | None, said: str
) -> None:
    """Without the space at its end, nor the marks that are composed."""
    text = "tr\N{LATIN SMALL LETTER E WITH ACUTE} words"
    layout, judge = HandwritingRequest(text=text).layout(8.0, 3.0), _Reads()
    arguments: Any = (_Told("stop", "stop"), text, layout, 0, judge, InkPiece(), until)
    kept = asyncio.run(best_of(*arguments))
    assert judge.texts == [said] * 2
    assert kept.legibility == round(-8 / len(said), 4)
