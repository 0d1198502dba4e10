"""What the dashboard shows is what Prometheus answers, named and placed as Grafana would."""

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from bench.goal import Goal
from bench.target import Target
from tests.reliability import board
from tests.reliability.plots import Panel
from tests.reliability.work import INK, TEXT, Reply, Work


def _panel(title: str, *questions: tuple[str, str, str], right: str = "") -> dict[str, Any]:
    targets = [dict(zip(("refId", "expr", "legendFormat"), asked, strict=True))
               for asked in questions]  # fmt: skip
    moved = {"matcher": {"options": right}, "properties": [board._RIGHT]}
    return {
        "title": title, "type": "timeseries", "gridPos": {"x": 1, "y": 2, "w": 8, "h": 7},
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": "s"}, "overrides": [moved] if right else []},
    }  # fmt: skip


_PANELS = [
    _panel(
        "Steps",
        ("A", 'rate(steps{model=~"$model"}[$__rate_interval])', "{{model}} of {{kind}}"),
        ("B", "cores", "cores{{none}}"),
        right="B",
    ),
    _panel("Queue", ("A", "nothing", "queue")),
    _panel("Failed runs", ("A", "nothing", "failed")),  # of which there is nothing to show
]
_SAID = {
    'rate(steps{model=~".+"}[60s])': [
        {"metric": {"model": "pen", "kind": "ink"},
         "values": [[1000, "1"], [1005, "NaN"], [1010, "4"]]},
    ],
    "cores": [{"metric": {}, "values": [[1000, "0.5"]]}],
    "nothing": [],
}  # fmt: skip


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What Prometheus is asked; it watches every 15 s from 1000 s on."""
    questions: list[dict[str, Any]] = []

    def get(url: str, *, params: dict[str, Any], trust_env: bool) -> httpx.Response:
        questions.append(params)
        told = {"data": {"result": _SAID[params["query"]]}}
        return httpx.Response(200, json=told, request=httpx.Request("GET", url))

    moments_s = iter((1000.0, 1090.0))
    clock = SimpleNamespace(time=lambda: next(moments_s), sleep=lambda _: None)
    (tmp_path / "prometheus.yml").write_text("global:\n  scrape_interval: 15s\n")
    (tmp_path / "board.json").write_text(json.dumps({"panels": _PANELS}))
    monkeypatch.setattr(board, "_OBSERVE", tmp_path)
    monkeypatch.setattr(board, "_BOARD", tmp_path / "board.json")
    monkeypatch.setattr(board, "_prometheus", lambda *_: nullcontext("http://any"))
    monkeypatch.setattr(board, "_load", lambda *_: None)
    monkeypatch.setattr(board, "uvloop", SimpleNamespace(run=lambda _: None))
    monkeypatch.setattr(board, "time", clock)
    monkeypatch.setattr(board.httpx, "get", get)
    return questions


def test_a_panel_has_the_answers_to_its_questions(asked: list[dict[str, Any]]) -> None:
    """As of the whole load, by seconds since it began; what is no number is no point."""
    found = [one for one in board.measure(Target("service", 1), 90.0) if not isinstance(one, Goal)]
    steps, queue, _ = (panel for table, panel in found if table == "samples")
    assert isinstance(steps, Panel)
    assert {line.name: line.points for line in steps.series} == {
        "pen of ink": ((0.0, 1.0), (10.0, 4.0)),
        "cores": ((0.0, 0.5),),
    }
    assert (steps.title, steps.unit, steps.place, steps.right) == (
        "Steps", "s", (1, 2, 8, 7), ["cores"],
    )  # fmt: skip
    assert (list(queue.series), queue.right) == ([], [])
    assert [row for table, row in found if table == "panels"] == [
        {"title": "Steps", "series": 2, "largest": 4.0},
        {"title": "Queue", "series": 0, "largest": None},
        {"title": "Failed runs", "series": 0, "largest": None},
    ]
    assert {(told["start"], told["end"]) for told in asked} == {(1000.0, 1090.0)}
    assert [told["query"] for told in asked] == [*_SAID, "nothing"]


@pytest.mark.usefixtures("asked")
def test_a_panel_that_shows_nothing_is_a_goal_missed_but_where_nothing_goes_wrong() -> None:
    (goal,) = (one for one in board.measure(Target("service", 1), 90.0) if isinstance(one, Goal))
    assert (goal.met, goal.value) == (False, 1)


def test_the_board_sees_half_of_the_capacity_all_twice_that_and_half_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And one client in twenty leaves."""
    offered: list[tuple[dict[Work, float], float, int]] = []
    left: list[int] = []

    async def capacity_per_s(*_: object) -> dict[Work, float]:
        return {TEXT: 10.0, INK: 2.0}

    async def offer(rates: Any, seconds: float, seed: int, one: Any) -> None:
        offered.append((rates, seconds, seed))
        for number in range(40 * seed, 40 * seed + 40):
            await one(TEXT, 0.0, number)

    async def ask(_: object, url: str, work: Work, seed: int, **how: Any) -> Reply | None:
        left.extend([seed] if how["leaves"] else [])
        return None

    for name, fake in (("capacity_per_s", capacity_per_s), ("offer", offer), ("ask", ask)):
        monkeypatch.setattr(board, name, fake)
    asyncio.run(board._load("http://any", 240.0))
    assert offered == [
        ({TEXT: 5.0, INK: 1.0}, 60.0, 0),
        ({TEXT: 10.0, INK: 2.0}, 60.0, 1),
        ({TEXT: 20.0, INK: 4.0}, 60.0, 2),
        ({TEXT: 5.0, INK: 1.0}, 60.0, 3),
    ]
    assert left == list(range(0, 160, 20))
