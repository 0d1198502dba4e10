"""Probes of latency, one after the other."""

import re
from collections import deque
from collections.abc import Iterator
from io import BytesIO, StringIO, TextIOWrapper
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from rich.console import Console

from clients.errors import Refused
from clients.watch import Row, Watch, _percentiles
from tests.clients.commands import evenkeel
from tests.clients.scripted import Scripted, answered, refusal


def test_an_interrupt_within_a_probe_leaves_what_was_known() -> None:
    class Fails:
        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            raise Refused("not now")

    class Hangs:
        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            raise KeyboardInterrupt

    row = Row("letters", "language")
    row.probe(Fails())
    with pytest.raises(KeyboardInterrupt):
        row.probe(Hangs())
    assert (row.failure, row.failed, row.probes) == ("not now", 1, 2)


def test_a_failure_without_words_is_told_by_its_name() -> None:
    class Hangs:
        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            raise httpx.ReadTimeout("")

    row = Row("letters", "language")
    row.probe(Hangs())
    assert row.failure == "ReadTimeout"


def test_of_a_watch_that_goes_on_for_days_the_last_thousand_probes_are_kept() -> None:
    class Writes:
        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            yield from (_part("a"), _part("b"))

    row = Row("letters", "language")
    for _ in range(1001):
        row.probe(Writes())  # type: ignore[arg-type]
    assert (row.probes, len(row.first_s), len(row.each_s)) == (1001, 1000, 1000)


def test_between_two_rounds_is_a_pause_as_long_as_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paused_s: list[float] = []
    clock = SimpleNamespace(perf_counter=lambda: 0.0, sleep=paused_s.append)
    monkeypatch.setattr("clients.watch.time", clock)
    assert Watch(_Serves()).run(3, every_s=0.25)  # type: ignore[arg-type]
    assert paused_s == [0.25, 0.25]


def test_a_terminal_of_80_columns_has_room_for_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Lists:
        def models(self) -> list[dict[str, Any]]:
            return [{"id": f"handwriting-{of}", "kind": "handwriting"} for of in ("int8", "2")]

    watch = Watch(Lists())  # type: ignore[arg-type]
    row = watch._rows["handwriting-int8"]
    row.first_s.extend([0.1234, 0.2345])
    row.each_s.extend([0.0041051, 0.0041051])
    Console(width=80).print(watch._table())
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert all(map(str.strip, shown.splitlines()))


def test_a_terminal_that_knows_ascii_alone_shows_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = TextIOWrapper(BytesIO(), "ascii")
    monkeypatch.setattr("clients.watch.Console", lambda: Console(file=shown, width=80))
    assert Watch(_Serves()).run(1, every_s=0)  # type: ignore[arg-type]


def _part(text: str) -> dict[str, Any]:
    return {"choices": [{"text": text}]}


class _Serves:
    """One model, which answers at once."""

    def models(self) -> list[dict[str, Any]]:
        return [{"id": "one", "kind": "language"}]

    def ask(self, *_: str) -> httpx.Response:
        return httpx.Response(200, text="")

    def complete(self, **_: object) -> Iterator[dict[str, Any]]:
        yield _part("a")


def test_times_are_of_the_first_event_and_of_each_byte_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now_s=10.0)
    monkeypatch.setattr("clients.watch.time", SimpleNamespace(perf_counter=lambda: clock.now_s))

    class Writes:
        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            for seconds, text in ((0.25, "abc"), (1.0, "d\N{EURO SIGN}"), (0.5, ""), (1.0, "ef")):
                clock.now_s += seconds
                yield _part(text)

    row = Row("letters", "language", failure="not now", failed=1)
    row.probe(Writes())  # type: ignore[arg-type]
    assert (list(row.first_s), list(row.each_s)) == ([0.25], [2.5 / 6])
    assert (row.failure, row.failed, row.probes) == ("", 1, 1)


def test_an_answer_without_a_byte_has_no_times_and_is_no_failure() -> None:
    class Ends:
        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            yield _part("")

    row = Row("letters", "language")
    row.probe(Ends())  # type: ignore[arg-type]
    assert row.cells() == ["letters", *["-"] * 4, "0", "0", "1", "0"]


def test_percentiles_are_the_50th_and_the_99th() -> None:
    assert _percentiles(deque(n / 1000 for n in range(101)), 1e3) == ("50.0", "99.0")
    assert _percentiles(deque([0.004]), 1e3) == ("4.0", "4.0")
    assert _percentiles(deque(), 1e3) == ("-", "-")
    assert _percentiles(deque([0.001, 0.003]), 1e3) == ("2.0", "3.0")


def test_times_of_all_probes_are_told_in_ms_and_in_microseconds() -> None:
    row = Row("letters", "language")
    for number in (1, 2, 3):
        row.first_s.append(number / 1e3)
        row.each_s.append(number / 1e6)
    assert row.cells()[1:5] == ["2.0", "3.0", "2.0", "3.0"]


def test_metrics_that_are_none_tell_nothing(service: Scripted) -> None:
    models = answered({"data": [{"id": "m", "kind": "language"}]})
    no_text = answered(["no"]).replace(b"\r\n", b"\r\ncontent-type: text/plain; charset=hex\r\n", 1)
    for told in (answered(["no"]), no_text):
        service.script = [models, None, told]
        result = evenkeel(service.url, "watch", "--count", "1")
        assert (result.exit_code, result.stderr) == (0, "")


def test_a_probe_that_is_refused_has_failed_and_is_not_asked_again(service: Scripted) -> None:
    """Until it is let in, a watch would show the latency of better times."""
    models = answered({"data": [{"id": "m", "kind": "language"}]})
    service.script = [models, refusal(503), answered(["no metrics"])]
    result = evenkeel(service.url, "watch", "--count", "1")
    assert (result.exit_code, result.stderr) == (1, "m: told 503\n")


def test_what_runs_and_what_waits_is_what_the_service_counts_of_each_model() -> None:
    class Serves:
        told = """
evenkeel_requests_running{model="one"} 2
evenkeel_requests_running{model="other"} 7
evenkeel_requests_waiting{model="one"} 5
"""

        def models(self) -> list[dict[str, Any]]:
            others = [{"id": kind, "kind": kind} for kind in ("reader", "waves")]
            return [{"id": "one", "kind": "language"}, *others]

        def ask(self, *_: str) -> httpx.Response:
            if not self.told:
                raise httpx.ConnectError("gone")
            return httpx.Response(200, text=self.told)

        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            yield _part("a")

    service = Serves()
    watch = Watch(service)  # type: ignore[arg-type]
    for told in (Serves.told, ""):  # the last that was told stands
        service.told = told
        watch._look()
        assert watch._rows["one"].cells()[-4:-2] == ["2", "5"]
    names = [str(column.header) for column in watch._table().columns]
    assert names[-4:] == ["running", "waiting", "probes", "failed"]
    assert watch._rows.keys() == {"one"}  # a reader writes nothing to take the time of


def test_a_probe_asks_for_enough_to_take_the_time_of_each_byte_and_of_each_point() -> None:
    asked: list[dict[str, Any]] = []

    class Writes:
        def complete(self, **body: Any) -> Iterator[dict[str, Any]]:
            asked.append(body)
            yield from (_part("a"), _part("b"))

        def write(self, **body: Any) -> Iterator[dict[str, Any]]:
            asked.append(body)
            yield from ({"points": [[0, 0, 0]]}, {"points": [[1, 1, 1]]})

    rows = [Row("letters", "language"), Row("scrawl", "handwriting")]
    for row in rows * 600:
        row.probe(Writes())  # type: ignore[arg-type]
    text = {"prompt": "The ", "max_tokens": 48, "temperature": 1}
    assert asked[:2] == [{"model": "letters"} | text, {"model": "scrawl", "text": "keel"}]
    assert [(len(row.first_s), len(row.each_s)) for row in rows] == [(600, 600)] * 2


def test_all_is_well_where_no_model_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Serves:
        def models(self) -> list[dict[str, Any]]:
            return [{"id": name, "kind": "language"} for name in ("fine", "fails")]

        def ask(self, *_: str) -> httpx.Response:
            return httpx.Response(200, text="")

        def complete(self, *, model: str, **_: object) -> Iterator[dict[str, Any]]:
            if model == "fails":
                raise Refused("not now")
            yield _part("a")

    assert not Watch(Serves()).run(1, every_s=0)  # type: ignore[arg-type]
    assert capsys.readouterr().err == "fails: not now\n"
    monkeypatch.setattr("sys.stderr", None)  # as Python has it where that is closed
    assert not Watch(Serves()).run(1, every_s=0)  # type: ignore[arg-type]
    assert "not now" not in capsys.readouterr().out


def test_what_was_not_well_before_the_last_probe_is_told_no_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Recovers:
        probes = 0

        def models(self) -> list[dict[str, Any]]:
            return [{"id": "one", "kind": "language"}]

        def ask(self, *_: str) -> httpx.Response:
            return httpx.Response(200, text="")

        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            self.probes += 1
            if self.probes == 1:
                raise Refused("not now")
            yield _part("a")

    assert Watch(Recovers()).run(2, every_s=0)  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("on_terminal", [False, True])
def test_a_terminal_is_shown_every_round_and_a_file_the_last(
    monkeypatch: pytest.MonkeyPatch, on_terminal: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")  # of a dumb one nothing is taken back
    shown = StringIO()
    console = Console(file=shown, force_terminal=on_terminal, width=80)
    monkeypatch.setattr("clients.watch.Console", lambda: console)
    at_pause: list[str] = []

    def pause(_: float) -> None:
        at_pause.append(shown.getvalue())

    monkeypatch.setattr(
        "clients.watch.time", SimpleNamespace(perf_counter=lambda: 0.0, sleep=pause)
    )
    Watch(_Serves()).run(2, every_s=0)  # type: ignore[arg-type]
    last = [
        re.findall(r"^one.* (\d+) +0 ", told, re.M)[-1:] for told in (*at_pause, shown.getvalue())
    ]
    assert last == [["1"] if on_terminal else [], ["2"]]
