"""Each goal is of its own figure, and what is found is judged whole."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.goal import Goal, judge
from bench.target import Target
from tests.reliability import __main__ as command
from tests.reliability import aborts, board, chaos, overload, soak
from tests.reliability.aborts import AbortRow, Leaver
from tests.reliability.chaos import ChaosRow
from tests.reliability.held import Held
from tests.reliability.record import record
from tests.reliability.soak import Sample, SoakRow
from tests.reliability.work import INK, TEXT

_SERVICE = Target("service", 1)
_HELD = Held(resident_mb=500.0, threads=10, files=40, running=0, waiting=0)
_ABORTS = AbortRow(10, {}, 0, 5, _HELD, _HELD, 0)
_SOAK = SoakRow(
    minutes=30, requests_per_s=1.0, answers=9, wrong=0, left=0, refused=0, failed={}, reloads=5,
    reloads_failed=0, resident_mb_per_h=0.0, threads_grown=0, files_grown=0,
)  # fmt: skip
_CHAOS = ChaosRow("kill", "it", 1.0, 9, 9, 9, [], 0, "")


def _missed(goals: Iterator[Goal]) -> list[str]:
    return [goal.name for goal in goals if goal.met is False]


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({"running": 1}, "slots and places in the queue"),
        ({"waiting": 1}, "slots and places in the queue"),
        ({"threads": 11}, "more threads"),
        ({"files": 41}, "more files and sockets"),
        ({"resident_mb": 520.1}, "more memory"),
    ],
)
def test_what_stays_of_clients_that_left_is_a_goal_missed(
    changed: dict[str, Any], missed: str
) -> None:
    """And what the service holds less than before is none."""
    after = replace(_HELD, **changed)
    assert _missed(aborts.goals(replace(_ABORTS, after=after))) == [missed]
    less = replace(_HELD, threads=1, files=1, resident_mb=1.0)
    assert _missed(aborts.goals(replace(_ABORTS, after=less))) == []
    wrong = aborts.goals(replace(_ABORTS, wrong_answers=1))
    assert _missed(wrong) == ["answers that differ afterwards"]


def test_what_the_service_held_before_is_what_it_held_before_they_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    did: list[str] = []

    def run(what: str) -> Any:
        did.append(what)
        return ["text", "ink"] if what == "answers" else 3

    def settled(*_: object) -> Held:
        did.append("held")
        return replace(_HELD, threads=len(did))

    monkeypatch.setattr(aborts, "uvloop", SimpleNamespace(run=run))
    monkeypatch.setattr(aborts, "_answers", lambda _: "answers")
    monkeypatch.setattr(aborts, "_let_leave", lambda _, clients: f"{clients} leave")
    monkeypatch.setattr(aborts, "settled", settled)
    monkeypatch.setattr(aborts, "_aborted", lambda _: len(did))
    (_, row), *_ = aborts.measure(_SERVICE, 2000)
    assert did == ["answers", "640 leave", "held", "2000 leave", "held", "answers"]
    assert (row.before.threads, row.after.threads, row.refused, row.aborted) == (3, 5, 3, 3)


def test_clients_leave_in_every_way_of_either_kind() -> None:
    ways = {(w.work.name, w.way, w.moment, w.end) for w in aborts._leavers(48)}
    assert len(ways) == 2 * len(aborts.WAYS) * len(aborts.MOMENTS) * len(aborts.ENDS) == 48


def test_clients_that_leave_had_asked_for_what_takes_a_while() -> None:
    """A socket of ink has said what to write; of text there is no more to say."""
    said = dict[str, list[Any]]()
    for work in (TEXT, INK):
        leaver = Leaver(work, "socket", "asked", "reset", 7)
        posted = json.loads(aborts._request(leaver).partition(b"\r\n\r\n")[2])
        said[work.name] = [posted, *(json.loads(frame[6:]) for frame in aborts._messages(leaver))]
    asked = {work: work.asked(7, stream=False) for work in (TEXT, INK)}
    opened = {work: {"model": work.model, "seed": 7} for work in (TEXT, INK)}
    assert said == {
        "text": [asked[TEXT] | {"max_tokens": 400}, opened[TEXT], {"write": 400}],
        "ink": [asked[INK], opened[INK] | {"text": "an even keel"}, {"write": 400}],
    }


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({"resident_mb_per_h": 1.1}, "slope of resident memory after the warm-up"),
        ({"threads_grown": 1}, "more threads"),
        ({"files_grown": 1}, "more files and sockets"),
        ({"wrong": 1}, "wrong answers"),
        ({"failed": {"500": 1}}, "answers that failed"),
        ({"reloads_failed": 1}, "reloads that failed"),
    ],
)
def test_each_thing_that_time_changed_is_a_goal_missed(
    changed: dict[str, Any], missed: str
) -> None:
    assert _missed(soak.goals(_SOAK)) == []
    assert _missed(soak.goals(replace(_SOAK, **changed))) == [missed]


def test_a_soak_is_at_a_share_of_capacity_and_told_by_what_came_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Threads may grow while it warms up, files not at all."""
    outcomes = {"200": 50, "left": 4, "503": 3, "wrong": 2, "cut": 1, "500": 1}
    grown = [Sample(minute, 500.0, 12 if minute < 3 else 15, 1) for minute in range(11)]
    gone_on = SimpleNamespace(
        outcomes=Counter(outcomes), reloads=Counter({200: 7, 503: 2, 500: 1}), samples=grown
    )
    did: list[Any] = []

    def settled(*_: object) -> Held:
        did.append("held")
        return replace(_HELD, files=40 + len(did), threads=16)

    def run(given: Any) -> Any:
        did.append(given)
        return {TEXT: 10.0, INK: 2.0} if given == "capacity" else gone_on

    monkeypatch.setattr(soak, "uvloop", SimpleNamespace(run=run))
    monkeypatch.setattr(soak, "capacity_per_s", lambda *_: "capacity")
    monkeypatch.setattr(soak, "_soak", lambda _, rates, seconds, reload_s: (rates, seconds))
    monkeypatch.setattr(soak, "settled", settled)
    found = dict(one for one in soak.measure(_SERVICE, 0.5) if not isinstance(one, Goal))
    row = found["soak"]
    assert did == ["capacity", "held", ({TEXT: 7.0, INK: 1.4}, 30.0), "held"]
    assert row.requests_per_s == 8.4
    assert (row.answers, row.wrong, row.left, row.refused) == (52, 2, 4, 3)
    assert row.failed == {"cut": 1, "500": 1}
    assert (row.reloads, row.reloads_failed) == (7, 3)
    assert (row.threads_grown, row.files_grown) == (16 - 12, 2)


def test_every_scenario_is_judged_by_what_was_lost_and_what_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = {
        "kill": replace(_CHAOS, lost=["cut"]),
        "stop": replace(_CHAOS, scenario="stop", wrong=1),
        "roll": replace(_CHAOS, scenario="roll"),
    }
    monkeypatch.setattr(chaos, "play", lambda name, *_: rows[name])
    found = list(chaos.measure(list(rows), 1.0, 9))
    goals = [one for one in found if isinstance(one, Goal)]
    assert len(goals) == 6
    assert _missed(iter(goals)) == ["kill: streams lost", "stop: streams that differ"]


class _Readers:
    """Stand for clients: the second one has lost an answer, and the third has a wrong one."""

    def __init__(self, url: str, seed: int, length: int) -> None:
        self.streams, self.requests, self.expected = 2, 3, [0] * length
        self.lost, self.wrong = ["cut"] if seed == 1 else [], int(seed == 2)

    def __enter__(self) -> "_Readers":
        return self

    def __exit__(self, *_: object) -> None: ...

    def learn(self) -> None: ...

    def end(self) -> None: ...


class _Stage:
    """Stands for two replicas: what was done to them, in order."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.replicas, self.pause_s, self.proxy = ["a", "b"], 0.0, SimpleNamespace(port=1)

    def start(self) -> None:
        self.did.append("start")

    def end(self, target: str, sig: signal.Signals) -> int:
        self.did.append((target, sig))
        return 0

    def each(self, *signals: signal.Signals, between_s: float = 0.0) -> None:
        self.did.append((*signals, between_s))

    def well(self) -> str:
        return "ok"


def test_what_any_client_has_lost_is_told_of_a_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos, "Reader", _Readers)
    monkeypatch.setattr(chaos, "_stage", lambda *_: nullcontext(_Stage()))
    row = chaos.play("stop", 0.0, 10, clients=3)
    assert (row.lost, row.wrong) == (["cut"], 1)
    assert (row.streams, row.requests, row.characters_and_points) == (6, 9, 60)


def test_every_replica_has_the_fault_and_another_is_there_before_one_is_told_to_stop() -> None:
    did = {}
    for action in chaos.kill, chaos.roll, chaos.stop, chaos.set_clock_back:
        stage = _Stage()
        action(stage)  # type: ignore[arg-type]
        did[action] = stage.did
    kill, term = signal.SIGKILL, signal.SIGTERM
    assert did == {
        chaos.kill: [("a", kill), "start", ("b", kill), "start"],
        chaos.roll: ["start", ("a", term), "start", ("b", term)],
        chaos.stop: [(signal.SIGSTOP, signal.SIGCONT, 5.0)],
        chaos.set_clock_back: [(signal.SIGUSR2, 0.0)],
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_replicas_are_as_their_fault_wants_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them, that can be told to fail, or whose log has no room; and the models they read
    are a copy."""
    had: list[tuple[bool, str]] = []

    @contextmanager
    def launch(
        name: str, *, artifacts: Path, settings: Any, server: Any, output: Any, errors: Any
    ) -> Iterator[Target]:
        assert {folder.name for folder in artifacts.iterdir()} == {TEXT.model, INK.model}
        assert artifacts != tmp_path
        assert settings["EVENKEEL_STATE_KEY"]
        had.append((server is chaos._FAULTY, "" if errors is None else errors.name))
        yield Target(name, len(had))

    for work in (TEXT, INK):
        (tmp_path / work.model).mkdir()
    monkeypatch.setattr(chaos, "ARTIFACTS", tmp_path)
    monkeypatch.setattr(chaos, "launch", launch)
    monkeypatch.setattr(chaos, "balancing", lambda: nullcontext(SimpleNamespace(ports=[])))
    found = {}
    for name, action in chaos.SCENARIOS.items():
        with chaos._stage(action, 0.0) as stage:
            assert stage.proxy.ports == [len(had) - 1, len(had)]
            found[name] = set(had[-2:])
    usual, faulty, mute = {(False, "")}, {(True, "")}, {(False, "/dev/full")}
    assert found == {
        "kill": usual, "stop": usual, "roll": usual, "fail": faulty, "clock": faulty, "disk": mute,
    }  # fmt: skip


def test_the_copy_of_a_newer_model_breaks_off_half_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = tmp_path / TEXT.model / "model.onnx"
    graph.parent.mkdir()
    graph.write_bytes(b"a whole graph!")
    waited: list[float] = []
    monkeypatch.setattr(chaos, "time", SimpleNamespace(sleep=waited.append))
    counted = {"model_failed": 2}
    stage: Any = SimpleNamespace(
        artifacts=tmp_path, pause_s=1.0, count=counted.__getitem__, well=lambda: "ok"
    )
    assert chaos.fill_disk(stage) == "2 not loaded; ok"
    assert graph.read_bytes() == b"a whole"
    assert sum(waited) > float(chaos._SETTINGS["EVENKEEL_WATCH_S"])  # it has been looked at


@pytest.mark.parametrize(("values", "missed"), [((0, 1), True), ((1, 0), True), ((0, None), False)])
def test_one_goal_missed_is_a_miss_and_one_that_nobody_measured_is_none(
    values: tuple[int | None, ...], missed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goals = [judge(f"goal {n}", "none", "at most", 0, value) for n, value in enumerate(values)]
    found = [("samples", _HELD), ("rows", {"a": 1}), *goals]
    told = record("do it", found, tmp_path / "to" / "it.json", silent={"samples"})
    assert told == ({"samples": [asdict(_HELD)], "rows": [{"a": 1}]}, missed)
    kept = json.loads((tmp_path / "to" / "it.json").read_text())
    assert (kept["command"], kept["rows"]) == ("do it", told[0])
    assert kept["goals"] == [asdict(goal) for goal in goals]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3  # samples are not said
    assert lines[0].startswith("rows:")


@pytest.mark.parametrize("said", ["", "Traceback (most recent call last):\n"])
def test_a_traceback_of_the_service_is_a_goal_missed(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def launch(name: str, *, errors: Any) -> Iterator[Target]:
        yield _SERVICE
        errors.write(said)  # as late as it ends

    monkeypatch.setattr(command, "launch", launch)
    monkeypatch.setattr(aborts, "measure", lambda *_: iter([("aborts", _ABORTS)]))
    assert command.main(["--out", str(tmp_path), "aborts"]) == bool(said)


@pytest.mark.parametrize(
    ("module", "said", "given"),
    [
        (overload, "overload", (20.0, 15.0, (0.5, 1.0, 2.0, 3.0), overload.PARTS)),
        (
            overload,
            "overload --seconds 1 --capacity-seconds 2 --shares 3 4 --parts beside callers",
            (1.0, 2.0, [3.0, 4.0], ["beside", "callers"]),
        ),
        (aborts, "aborts", (10_000,)),
        (aborts, "aborts --clients 5", (5,)),
        (soak, "soak", (30.0,)),
        (soak, "soak --minutes 0.5", (0.5,)),
        (chaos, "chaos", (["kill", "stop", "roll", "fail", "clock", "disk"], 2.0, 3000)),
        (chaos, "chaos stop kill --pause 0.5 --length 9", (["stop", "kill"], 0.5, 9)),
        (board, "board", (240.0,)),
        (board, "board --seconds 5", (5.0,)),
    ],
    ids=lambda told: told if isinstance(told, str) else "",
)
def test_what_is_measured_is_what_was_asked_for_or_all_that_the_help_says(
    module: Any, said: str, given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Any] = []
    monkeypatch.setattr(command, "PICTURES", {})
    monkeypatch.setattr(command, "launch", lambda *_, **__: nullcontext(_SERVICE))
    monkeypatch.setattr(module, "measure", lambda *given: measured.append(given) or iter(()))
    assert command.main(["--out", str(tmp_path), *said.split()]) == 0
    assert measured == [given if module is chaos else (_SERVICE, *given)]
