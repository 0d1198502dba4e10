"""What is judged is what was measured: nothing is met because nobody looked."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from bench.goal import Goal
from bench.rows import spread
from bench.target import Target
from tests.reliability import overload, soak
from tests.reliability.held import series
from tests.reliability.overload import CallerRow, OfferRow
from tests.reliability.reader import Reader
from tests.reliability.soak import Sample, SoakRow, slope_mb_per_h
from tests.reliability.work import TEXT, Reply, content_of


def _row(share: float, good_per_s: float, late_s: float = 0.001, cores: float = 0.1) -> OfferRow:
    first = spread([0.004])
    return OfferRow(
        what="text", times_capacity=share, offered_per_s=100.0 * share, seconds=1.0, requests=100,
        good_per_s=good_per_s, answered_per_s=good_per_s, refused_share=0.0, failed={},
        first_ms=first, whole_ms=first, refusal_ms=first, retry_after_s={},
        late_ms=spread([late_s]), driver_cores=cores,
    )  # fmt: skip


_BESIDE = CallerRow(200, 10, 0, {}, spread([0.01]), spread([0.01]))


def _by_name(rows: list[OfferRow]) -> dict[str, bool | None]:
    return {goal.name: goal.met for goal in overload.goals({"overload": rows}, [_BESIDE])}


def test_goodput_under_overload_is_that_of_three_times_capacity_beside_its_peak() -> None:
    name = "goodput at 3 times capacity"
    assert _by_name([_row(1, 100), _row(3, 96)])[name] is True
    assert _by_name([_row(1, 100), _row(3, 94)])[name] is False
    assert _by_name([_row(3, 94), _row(1, 100)])[name] is False, "in whichever order"


@pytest.mark.parametrize("shares", [(0.5,), (1.0, 2.0), (3.0,)])
def test_goodput_is_not_judged_by_itself_or_at_another_load(shares: tuple[float, ...]) -> None:
    found = _by_name([_row(share, 100) for share in shares])
    assert found["goodput at 3 times capacity"] is None
    assert (found["refusal at 3 times capacity, p99"] is None) == (3.0 not in shares)


def test_a_driver_that_is_late_or_busy_is_a_goal_missed() -> None:
    assert all(_by_name([_row(1, 100), _row(3, 96)]).values())
    for odd in (_row(3, 96, late_s=0.011), _row(3, 96, cores=0.95)):
        missed = [name for name, met in _by_name([_row(1, 100), odd]).items() if not met]
        assert len(missed) == 1, "and no other"
        assert "driver" in missed[0]


@pytest.mark.parametrize("parts", [("overload",), ("overload", "beside"), ("beside",)])
def test_goals_of_loads_do_not_wait_for_the_part_of_the_callers(
    parts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def capacity_per_s(url: str, works: Any, seconds: float) -> dict[Any, float]:
        return dict.fromkeys(works, 100.0)

    async def _offer(url: str, capacity: Any, share: float, seconds: float) -> list[OfferRow]:
        return [_row(share, 100 / share, late_s=0.02) for _ in capacity]

    monkeypatch.setattr(overload, "capacity_per_s", capacity_per_s)
    monkeypatch.setattr(overload, "_offer", _offer)
    found = overload.measure(Target("service", 1), 1.0, 1.0, (1.0, 3.0), parts)
    goals = [one for one in found if isinstance(one, Goal)]
    goodput = [goal.met for goal in goals if goal.name == "goodput at 3 times capacity"]
    assert goodput == [False] * ("overload" in parts)
    late = [goal.met for goal in goals if "driver" in goal.name]
    assert late == [False] * (2 * ("overload" in parts) + 4 * ("beside" in parts))
    assert not any("caller" in goal.name for goal in goals)


def _reply(status: str, sent_s: float, first_s: float, ended_s: float, due_s: float = 1.0) -> Reply:
    return Reply(status=status, intended_s=due_s, sent_s=sent_s, first_s=first_s, ended_s=ended_s)


def test_times_count_from_when_a_request_was_meant_and_those_of_refusals_from_when_it_was() -> None:
    replies = [
        _reply("200", 1.01, 1.04, 1.5),
        _reply("200", 1.01, 1.06, 1.5),  # the first byte after 50 ms, though 50 after it was sent
        _reply("200", 1.01, 1.04, 3.5),  # the last one after 2 s
        _reply("503", 1.01, 1.02, 1.02),
        _reply("cut", 1.01, 1.02, 1.02),
        _reply("200", 0.1, 0.2, 0.3, due_s=0.1),  # while it warmed up
    ]
    row = overload._row(TEXT, 1.0, 5.0, replies, (0.5, 2.5), 0.1)
    assert (row.requests, row.good_per_s, row.answered_per_s) == (5, 0.5, 1.5)
    assert (row.refused_share, row.failed) == (0.2, {"cut": 1})
    assert row.first_ms is not None
    assert row.refusal_ms is not None
    assert (row.first_ms.p99, row.refusal_ms.p99) == pytest.approx((60.0, 10.0))


def test_a_series_is_the_sum_of_those_with_the_label() -> None:
    page = (
        'evenkeel_a{model="x",reason="abort"} 2.0\nevenkeel_a{reason="stop"} 3.0\nevenkeel_ab 9\n'
    )
    assert (series(page, "a"), series(page, "a", 'reason="abort"')) == (5.0, 2.0)


def test_a_slope_is_of_what_comes_after_the_warm_up() -> None:
    grown = [Sample(minute, 500 + minute, 1, 1) for minute in range(11, 51)]
    steep = [Sample(minute, 100 * minute, 1, 1) for minute in range(11)]
    assert slope_mb_per_h(steep + grown) == pytest.approx(60)


def test_a_slope_does_not_ask_what_two_models_held_for_a_moment() -> None:
    flat = [Sample(minute, 600 if minute in (12, 49) else 500, 1, 1) for minute in range(51)]
    assert slope_mb_per_h(flat) == 0


def test_a_slope_does_not_ask_for_the_samples_of_the_warm_up() -> None:
    """Of four minutes one; a slope of all would have the three that begin there."""
    held = [Sample(minute, mb, 1, 1) for minute, mb in enumerate((0, 500, 500, 500.1))]
    assert slope_mb_per_h(held) < 7


def test_content_does_not_depend_on_where_events_are_cut() -> None:
    whole = [{"choices": [{"text": "abc"}]}, {"usage": {}}]
    parts = [
        {"choices": [{"text": "a"}]},
        {"choices": [{"text": ""}]},
        {"choices": [{"text": "bc"}]},
    ]
    assert content_of(whole) == content_of(parts) == ["a", "b", "c"]
    points = [
        {"lines": ["a"]},
        {"line": 0, "points": [[1, 2, 0]]},
        {"line": 0, "finish_reason": "x"},
    ]
    assert content_of(points) == [[1, 2, 0]]


class _Refuses(BaseHTTPRequestHandler):
    """Answers all requests in one way."""

    answer: tuple[int, str, bytes]

    def do_POST(self) -> None:
        status, kind, body = self.answer
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


_STREAM = b'data: {"choices": %s}\n\ndata: [DONE]\n\n'


@pytest.fixture
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    handler = type("Handler", (_Refuses,), {"answer": request.param})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "url",
    [
        (400, "application/json", b'{"error": {"message": "no", "type": "invalid_request_error"}}'),
        (200, "text/event-stream", _STREAM % b'[{"text": "", "finish_reason": "length"}]'),
        (200, "text/event-stream", _STREAM % b"1"),
    ],
    ids=["refused", "nothing", "odd"],
    indirect=True,
)
def test_a_reader_whose_first_answer_is_none_has_lost_it(url: str) -> None:
    with Reader(url, 0, 100) as reader:
        reader.learn()
    assert reader.lost
    assert reader.streams == 0


@pytest.mark.parametrize("answers", [0, 1])
def test_a_soak_without_answers_shows_nothing(answers: int) -> None:
    row = SoakRow(
        minutes=30, requests_per_s=1.0, answers=answers, wrong=0, left=0, refused=1800, failed={},
        reloads=0, reloads_failed=0, resident_mb_per_h=0.0, threads_grown=0, files_grown=0,
    )  # fmt: skip
    assert all(goal.met for goal in soak.goals(row)) == (answers > 0)
