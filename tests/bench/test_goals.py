"""The goals: what they find in rows, where their border is, and what a run says of them."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bench.__main__ as command
from bench import report, servers
from bench.goals import GOALS, Goal, judge, outcomes
from bench.pairs import Tables
from bench.peers.launch import NAMES, PEERS
from bench.rows import Load, LoadRow, Window, summarise
from bench.sections import QUICK_SECTIONS, SECTIONS
from bench.servers import capacity, offered

Table = list[dict[str, Any]]


def step(side: str, threads: int = 2, units: int = 512, **columns: float | None) -> Table:
    return [{"model": f"lstm-{units}", "threads": threads, "side": side} | columns]


def load(target: str, clients: int = 32, streamed: bool = False, **columns: Any) -> dict[str, Any]:
    row = {
        "target": target, "loop": "closed", "clients": clients, "streamed": streamed,
        "lengths": "fixed", "goodput_per_s": 0.0, "bytes_per_s": 0.0, "latency_ms": None,
        "first_byte_ms": None,
    }  # fmt: skip
    return row | columns


def everyone(service: float, *peers: float) -> Table:
    """Goodput of the service and of every peer."""
    values = zip(NAMES, (service, *peers), strict=True)
    return [load(name, goodput_per_s=value) for name, value in values]


def inside(rows: int, **columns: float) -> Table:
    return [{"rows": rows} | columns]


def completion(p50_ms: float, in_process_ms: float) -> Tables:
    served = load("service", 1, latency_ms={"p50": p50_ms})
    return {"load": [served], "in_process": inside(1, ms_median=in_process_ms)}


def together(bytes_per_s: float, in_process: float) -> Tables:
    served = load("service", bytes_per_s=bytes_per_s)
    return {"load": [served], "in_process": inside(32, bytes_per_s=in_process)}


# By goal: rows at the border, which is met, and rows just beyond, which is missed.
BORDERS: dict[str, tuple[Tables, Tables]] = {
    "step, 512 units, 2 threads, against PyTorch eager": (
        {"step": step("eager", ratio_median=4.0)},
        {"step": step("eager", ratio_median=3.999)},
    ),
    "step, 512 units, 2 threads, against torch.compile": (
        {"step": step("compile", ratio_median=4.0)},
        {"step": step("compile", ratio_median=3.999)},
    ),
    "step, 512 units, 2 threads, against OpenVINO": (
        {"step": step("openvino", ratio_median=2.0)},
        {"step": step("openvino", ratio_median=1.999)},
    ),
    "step, 512 units, 2 threads, floor": (
        {"step": step("served", over_floor_median=1.6)},
        {"step": step("served", over_floor_median=1.61)},
    ),
    "step, 512 units, 2 threads, floor, folded": (
        {"step": step("folded", over_floor_median=1.6)},
        {"step": step("folded", over_floor_median=1.61)},
    ),
    "step, 512 units, 1 thread, floor": (
        {"step": step("served", 1, over_floor_median=1.35)},
        {"step": step("served", 1, over_floor_median=1.36)},
    ),
    "step, 512 units, 1 thread, floor, folded": (
        {"step": step("folded", 1, over_floor_median=1.35)},
        {"step": step("folded", 1, over_floor_median=1.36)},
    ),
    "step, 1024 units, quantized against exact": (
        {"step": step("quantized", 1, 1024, ratio_median=0.625)},
        {
            "step": step("quantized", 1, 1024, ratio_median=0.5)
            + step("quantized", 2, 1024, ratio_median=0.63)
        },
    ),
    "completion of 200 bytes, one client, p50": (
        completion(26.0, 20.0),
        completion(26.1, 20.0),
    ),
    "WebSocket step, p50": (
        {"online": [{"way": "websocket", "p50_us": 500.0}, {"way": "in process", "p50_us": 250.0}]},
        {"online": [{"way": "websocket", "p50_us": 501.0}, {"way": "in process", "p50_us": 250.0}]},
    ),
    "32 clients, throughput against the plain peer": (
        {"load": [load("service", bytes_per_s=5000.0), load("plain", bytes_per_s=1000.0)]},
        {"load": [load("service", bytes_per_s=4999.0), load("plain", bytes_per_s=1000.0)]},
    ),
    "32 clients, goodput against the best peer": (
        {"load": everyone(30.0, 1.0, 20.0, 0.0, 0.0)},
        {"load": everyone(29.9, 1.0, 20.0, 0.0, 0.0)},
    ),
    "32 clients, throughput against the session": (
        together(800.0, 1000.0),
        together(799.0, 1000.0),
    ),
    "32 clients, streamed, first byte, p99": (
        {"load": [load("service", streamed=True, first_byte_ms={"p50": 20.0, "p99": 60.0})]},
        {"load": [load("service", streamed=True, first_byte_ms={"p50": 20.0, "p99": 60.1})]},
    ),
    "training against torch.nn.LSTM": (
        {"training": [{"to_lstm_median": 0.9}, {"to_lstm_median": 0.75}]},
        {"training": [{"to_lstm_median": 0.9}, {"to_lstm_median": 0.749}]},
    ),
    "start to ready, two models": (
        {"start": [{"median_s": 2.0}]},
        {"start": [{"median_s": 2.001}]},
    ),
    "resident memory": (
        {"resident": [{"resident_mb": 100.0}, {"resident_mb": 314.5728}]},
        {"resident": [{"resident_mb": 100.0}, {"resident_mb": 314.6}]},
    ),
}  # fmt: skip


def goal(name: str) -> Goal:
    return next(goal for goal in GOALS if goal.name == name)


@pytest.mark.parametrize("name", [goal.name for goal in GOALS])
def test_a_goal_is_met_at_its_border_and_missed_beyond(name: str) -> None:
    at, beyond = BORDERS[name]
    assert judge(goal(name), at).met is True
    missed = judge(goal(name), beyond)
    assert missed.met is False
    assert missed.line().startswith("MISSED ")


def test_every_name_is_that_of_one_goal() -> None:
    assert [name for name, count in Counter(g.name for g in GOALS).items() if count > 1] == []
    assert {g.name for g in GOALS} == set(BORDERS)
    assert {g.section for g in GOALS} == set(SECTIONS) - {"open"}  # what it finds has no goal


@pytest.mark.parametrize("name", [goal.name for goal in GOALS])
def test_what_was_not_measured_is_neither_met_nor_missed(name: str) -> None:
    """No rows, or those of other goals' sections alone."""
    found = judge(goal(name), {})
    assert (found.met, found.value, found.bound, found.ratio) == (None, None, None, None)
    others = {g.name for g in GOALS if g.section != goal(name).section}
    elsewhere = {table: rows for other in others for table, rows in BORDERS[other][0].items()}
    assert judge(goal(name), elsewhere).met is None


def test_without_every_peer_nothing_is_said_of_the_best() -> None:
    rows = [row for row in everyone(30.0, 1.0, 2.0, 0.0, 0.0) if row["target"] != PEERS[-1]]
    assert judge(goal("32 clients, goodput against the best peer"), {"load": rows}).met is None


@pytest.mark.parametrize(("service", "met"), [(0.1, True), (0.0, False)])
def test_nothing_is_not_better_than_nothing(service: float, met: bool) -> None:
    """Where no peer answers in time there is no ratio, and the service has to answer itself."""
    rows = everyone(service, 0.0, 0.0, 0.0, 0.0)
    found = judge(goal("32 clients, goodput against the best peer"), {"load": rows})
    assert (found.met, found.ratio) == (met, None)


def test_repeats_count_by_their_median() -> None:
    rates = {"service": (9000.0, 100.0, 5000.0), "plain": (1000.0, 900.0, 4000.0)}
    rows = [load(name, bytes_per_s=rate) for name, each in rates.items() for rate in each]
    # Other loads of the same servers are other measurements.
    rows += [load("service", bytes_per_s=1.0) | other for other in (
        {"lengths": "mixed"}, {"loop": "open"}, {"clients": 8}, {"streamed": True},
    )]  # fmt: skip
    found = judge(goal("32 clients, throughput against the plain peer"), {"load": rows})
    assert (found.value, found.bound, found.ratio) == (5000.0, 5000.0, 5.0)


def test_a_repeat_without_an_answer_is_not_passed_over() -> None:
    rows = [load("service", 1, latency_ms=spread) for spread in ({"p50": 1.0}, None)]
    tables = {"load": rows, "in_process": inside(1, ms_median=20.0)}
    assert judge(goal("completion of 200 bytes, one client, p50"), tables).met is None


def test_every_goal_is_printed_once() -> None:
    tables: dict[str, Table] = {}
    for at, _ in BORDERS.values():
        for table, rows in at.items():
            tables.setdefault(table, []).extend(rows)
    for measured in (tables, {}):
        *lines, last = report.goal_lines(measured)
        told = Counter(line[7:].split(":")[0] for line in lines)
        assert told == Counter(g.name for g in GOALS)
        assert last.endswith("not measured")


def test_plans_name_servers_that_exist() -> None:
    assert set(servers.QUICK.servers) <= set(NAMES)
    assert set(servers.FULL.servers) == set(NAMES)
    assert set(QUICK_SECTIONS) <= set(SECTIONS)
    for plan in (servers.QUICK, servers.FULL):
        assert {servers.ALONE, servers.MANY} <= set(plan.clients)  # the goals are of these


def test_a_server_is_asked_at_the_rates_it_can_do_and_at_one_it_cannot() -> None:
    """Of the service's rates, those up to the first beyond 1.2 times what the peer can do."""
    shares = servers.FULL.shares
    rates = [50.0, 80.0, 95.0, 120.0]
    assert offered(100.0, rates, shares) == rates
    assert offered(10.0, rates, shares) == [50.0]
    assert offered(50.0, rates, shares) == [50.0, 80.0]
    assert offered(0.0, rates, shares) == [50.0]


def test_capacity_is_the_median_with_32_clients_streamed_where_there_are_streams() -> None:
    def row(target: str, clients: int, streamed: bool, rate: float) -> LoadRow:
        asked = Load(target, "closed", clients, None, streamed, "fixed")
        return replace(summarise(asked, [], Window(0.0, 1.0), 0.0), requests_per_s=rate)

    rows = [row("service", 32, True, rate) for rate in (90.0, 10.0, 70.0)]
    rows += [row("service", 32, False, 500.0), row("service", 1, True, 500.0)]
    rows += [row("bentoml", 32, False, 40.0)]
    assert (capacity("service", rows), capacity("bentoml", rows)) == (70.0, 40.0)


def test_a_section_is_kept_as_soon_as_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run breaks off in its second section; the first is there, with rows and goals."""
    from bench.memory import StartRow

    def memory(full: bool) -> Any:
        yield "start", StartRow(("a", "b"), 1.5, (1.5,))

    def training(full: bool) -> Any:
        raise KeyboardInterrupt
        yield

    file = tmp_path / "bench.json"
    monkeypatch.setattr(command, "SECTIONS", {"memory": memory, "training": training})
    monkeypatch.setattr(report, "keep_quick", lambda s, c: report._write(file, {s: c}))
    with pytest.raises(KeyboardInterrupt):
        command.main(["--sections", "memory,training"])
    kept = json.loads(file.read_text())["memory"]
    assert kept["command"] == "python -m bench --sections memory,training"
    assert kept["rows"] == {"start": [{"models": ["a", "b"], "median_s": 1.5, "all_s": [1.5]}]}
    assert {"machine", "versions"} <= kept.keys()
    assert [g["met"] for g in kept["goals"]] == [True, None]
    assert "median_s 1.5" in capsys.readouterr().out


def test_the_other_sections_of_the_quick_file_stay(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    for section in ("step", "http", "step"):
        report.keep_quick(section, {"rows": {}}, file)
    assert set(json.loads(file.read_text())) == {"step", "http"}


def test_goals_of_a_section_keep_their_order() -> None:
    names = [o.name for o in outcomes("memory", {})]
    assert names == ["start to ready, two models", "resident memory"]


def test_an_unknown_section_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--sections", "step,gpu"])
    assert "'gpu' is not one of step, http" in capsys.readouterr().err
