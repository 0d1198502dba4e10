"""The goals: what each section finds in its rows, where their border is, and what a run says."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bench.__main__ as command
from bench import memory, servers, step, training, websocket
from bench.goal import Goal, judge
from bench.in_process import InProcessRow
from bench.memory import MemoryRow, StartRow
from bench.rows import Load, LoadRow, Spread, Window, summarise
from bench.servers import capacity, offered
from bench.step import StepRow
from bench.target import IN_EIGHT_BITS, PEERS, SERVERS, SERVICE
from bench.websocket import OnlineRow


def side(name: str, ratio: float = 1.0, floor: float | None = None, *, units: int = 512,
         threads: int = 2) -> StepRow:  # fmt: skip
    return StepRow(f"lstm-{units}", threads, name, 1.0, 1.0, ratio, 1.0, 1.0, floor, None, 9, "")


def under_load(name: str, clients: int = 32, streamed: bool = False, **columns: Any) -> LoadRow:
    asked = Load(name, "closed", clients, None, streamed, "fixed")
    return replace(summarise(asked, [], Window(0.0, 1.0), 0.0), **columns)


def spread(p50: float, p99: float = 0.0) -> Spread:
    return Spread(p50, p99, p99, None, 100)


def inside(rows: int, ms: float = 0.0, bytes_per_s: float = 0.0) -> InProcessRow:
    return InProcessRow("m", rows, 2, 8, 32, 5, ms, bytes_per_s)


def online(way: str, p50_us: float) -> OnlineRow:
    return OnlineRow("m", way, 2, 100, p50_us, p50_us, p50_us, None)


def over_the_wire(json_us: float, binary_us: float) -> Iterable[Goal]:
    """Beside 250 µs in process."""
    ways = {"websocket": json_us, "websocket, binary": binary_us, "in process": 250.0}
    return websocket.goals([online(way, us) for way, us in ways.items()])


def start(median_s: float) -> StartRow:
    return StartRow(("a", "b"), median_s, (median_s,))


def resident(*mb: float) -> list[MemoryRow]:
    return [MemoryRow(("a",), value) for value in mb]


def trained(ratio: float) -> training.Row:
    return training.Row(256, 1, 1.0, 1.0, 1.0, ratio, ratio, 1.0, 1.0)


def everyone(service: float, *peers: float) -> list[LoadRow]:
    """Goodput of the service and of every peer."""
    values = zip((SERVICE, *PEERS), (service, *peers), strict=True)
    return [under_load(name, goodput_per_s=value) for name, value in values]


def completion(p50_ms: float) -> Iterator[Goal]:
    rows = [under_load(SERVICE, 1, latency_ms=spread(p50_ms))]
    return servers.goals(rows, [inside(1, ms=20.0), inside(32, ms=900.0)])


def throughput(service: float) -> Iterator[Goal]:
    rows = [under_load(SERVICE, bytes_per_s=service), under_load("plain", bytes_per_s=1000.0)]
    return servers.goals(rows, [inside(32, bytes_per_s=6250.0), inside(1, bytes_per_s=1.0)])


def first_byte(p99: float) -> Iterator[Goal]:
    rows = [under_load(SERVICE, streamed=True, first_byte_ms=spread(20.0, p99))]
    return servers.goals(rows, [])


def throughputs(service: float, eight: float = 0.0) -> Iterator[Goal]:
    """Beside peers of which the best, streaming, has 1,000 bytes a second."""
    rows = [under_load(name, bytes_per_s=900.0) for name in PEERS]
    rows.append(under_load(PEERS[1], streamed=True, bytes_per_s=1000.0))
    rows.append(under_load(SERVICE, bytes_per_s=service))
    rows.append(under_load(IN_EIGHT_BITS, bytes_per_s=eight))
    return servers.goals(rows, [])


def arrivals(share: float, p50: float = 1.0, p99: float = 1.0) -> Iterator[Goal]:
    """An open loop at one rate, beside peers whose medians are 40 and 30 ms."""
    late = {"latency_ms": spread(9000.0), "first_byte_ms": spread(9000.0, 9000.0)}
    mine = late | {"latency_ms": spread(p50)}
    rows = [under_load(SERVICE, **mine)]
    rows.append(under_load(SERVICE, streamed=True, first_byte_ms=spread(20.0, p99)))
    rows += [under_load(PEERS[n], latency_ms=spread(ms)) for n, ms in ((0, 40.0), (1, 30.0))]
    rows.append(under_load(IN_EIGHT_BITS, latency_ms=spread(1.0)))  # no peer
    rows.append(under_load(PEERS[0], streamed=True, latency_ms=spread(1.0)))  # at another rate
    easy = [under_load(SERVICE, **mine), under_load(PEERS[0], latency_ms=spread(1000.0))]
    beyond = [under_load(SERVICE, streamed=streamed, **late) for streamed in (False, True)]
    return servers.open_goals({0.5: easy, share: rows, 1.2: [*rows[2:], *beyond]})


BEST = "32 clients, goodput against the best peer"
PLAIN = "32 clients, throughput against the plain peer"
# The name of a goal, what a section says at its border, and what it says just beyond.
BORDERS: list[tuple[str, Iterable[Goal], Iterable[Goal]]] = [
    (
        f"step, 512 units, 2 threads, against {name}",
        step.goals([side(key, factor)]), step.goals([side(key, factor - 0.001)]),
    )
    for key, name, factor in (
        ("eager", "PyTorch eager", 4.0), ("compile", "torch.compile", 4.0),
        ("openvino", "OpenVINO", 2.0),
    )
] + [
    (
        f"step, 512 units, {threads} thread{'s' * (threads > 1)}, floor{suffix}",
        step.goals([side(key, floor=bound, threads=threads)]),
        step.goals([side(key, floor=bound + 0.01, threads=threads)]),
    )
    for threads, bound in ((2, 1.6), (1, 1.35))
    for key, suffix in (("served", ""), ("folded", ", folded"))
] + [
    (
        f"step in eight bits, 512 units, 2 threads, against {name}",
        step.goals([side("quantized", 1.0), side(key, 1.0)]),
        step.goals([side("quantized", 1.0), side(key, 0.99)]),
    )
    for key, name in (("eager-int8", "PyTorch eager"), ("openvino-int8", "OpenVINO"))
] + [
    (
        "step, 1024 units, quantized against exact",
        step.goals([side("quantized", 0.625, units=1024)]),
        step.goals([side("quantized", r, units=1024, threads=t) for r, t in ((0.5, 1), (0.63, 2))]),
    ),
    ("completion of 200 bytes, one client, p50", completion(26.0), completion(26.1)),
    (PLAIN, throughput(5000.0), throughput(4999.0)),
    ("32 clients, throughput against the session", throughput(5000.0), throughput(4999.0)),
    (
        BEST,
        servers.goals(everyone(30.0, 1.0, 20.0, 0.0, 0.0), []),
        servers.goals(everyone(29.9, 1.0, 20.0, 0.0, 0.0), []),
    ),
    ("32 clients, streamed, first byte, p99", first_byte(60.0), first_byte(60.1)),
    (
        "32 clients, throughput against the best peer", throughputs(1300.0), throughputs(1299.0),
    ),
    (
        "32 clients, throughput in eight bits against the best peer",
        throughputs(0.0, 2000.0), throughputs(0.0, 1999.0),
    ),
    (
        "whole answers at each rate up to 95% of capacity, p50",
        arrivals(0.95, p50=30.0), arrivals(0.95, p50=30.1),
    ),
    (
        "streamed, first byte, p99 up to 80% of capacity",
        arrivals(0.8, p99=50.0), arrivals(0.8, p99=50.1),
    ),
    (
        "streamed, first byte, p99 at 95% of capacity",
        arrivals(0.95, p99=60.0), arrivals(0.95, p99=60.1),
    ),
    ("WebSocket step, p50", over_the_wire(550.0, 0.0), over_the_wire(551.0, 0.0)),
    ("WebSocket step, binary, p50", over_the_wire(0.0, 450.0), over_the_wire(0.0, 451.0)),
    (
        "training against torch.nn.LSTM",
        training.goals([trained(0.9), trained(0.75)]),
        training.goals([trained(0.9), trained(0.749)]),
    ),
    (
        "start to ready, two models",
        memory.goals(resident(1.0), start(2.0)), memory.goals(resident(1.0), start(2.001)),
    ),
    (
        "resident memory",
        memory.goals(resident(100.0, 314.5728), start(1.0)),
        memory.goals(resident(314.6, 100.0), start(1.0)),
    ),
]  # fmt: skip


def named(goals: Iterable[Goal], name: str) -> Goal:
    (goal,) = (goal for goal in goals if goal.name == name)
    return goal


@pytest.mark.parametrize(("name", "at", "beyond"), BORDERS, ids=[name for name, *_ in BORDERS])
def test_a_goal_is_met_at_its_border_and_missed_beyond(
    name: str, at: Iterable[Goal], beyond: Iterable[Goal]
) -> None:
    assert named(at, name).met is True
    missed = named(beyond, name)
    assert missed.met is False
    assert missed.line().startswith("MISSED ")


def test_a_goal_says_what_was_measured_and_what_it_is_held_against() -> None:
    """And the ratio, unless that is what was measured."""
    told = judge("speed", "twice", "at least", 2.0, 5000.0, 1250.0, unit="bytes/s").line()
    assert told == "met    speed: 5,000 bytes/s, at least 2,500; ratio 4 (twice)"
    told = judge("share", "its own", "at most", 0.5, 0.75).line()
    assert told == "MISSED share: 0.75 times, at most 0.5 (its own)"


def test_a_ratio_is_to_what_is_compared_whatever_is_allowed_besides() -> None:
    found = judge("time", "its own, and 1 ms", "at most", 1.25, 26.0, 20.0, plus=1.0, unit="ms")
    assert (found.met, found.bound, found.ratio) == (True, 26.0, 1.3)
    (whole, binary) = over_the_wire(500.0, 300.0)
    assert (whole.ratio, binary.ratio) == (2.0, 1.2)


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    """And every goal of a section is told all the same, once."""
    silent = [*step.goals([]), *servers.goals([], []), *servers.open_goals({})]
    assert {(g.met, g.value, g.bound, g.ratio) for g in silent} == {(None,) * 4}
    assert all("not measured" in goal.line() for goal in silent)
    elsewhere = {
        "WebSocket step, p50",
        "WebSocket step, binary, p50",
        "training against torch.nn.LSTM",
        "start to ready, two models",
        "resident memory",
    }
    assert sorted([*(g.name for g in silent), *elsewhere]) == sorted(name for name, *_ in BORDERS)


def test_without_every_peer_nothing_is_said_of_the_best() -> None:
    rows = [row for row in everyone(30.0, 1.0, 2.0, 0.0, 0.0) if row.target != PEERS[-1]]
    assert named(servers.goals(rows, []), BEST).met is None


@pytest.mark.parametrize(("service", "met"), [(0.1, True), (0.0, False)])
def test_nothing_is_not_better_than_nothing(service: float, met: bool) -> None:
    """Where no peer answers in time there is no ratio, and the service has to answer itself."""
    found = named(servers.goals(everyone(service, 0.0, 0.0, 0.0, 0.0), []), BEST)
    assert (found.met, found.ratio) == (met, None)


def test_a_server_counts_in_the_better_of_its_modes() -> None:
    rows = everyone(1.0, 1.0, 20.0, 0.0, 0.0)
    rows.append(under_load(SERVICE, streamed=True, goodput_per_s=30.0))
    assert named(servers.goals(rows, []), BEST).value == 30.0


def test_repeats_count_by_their_median() -> None:
    rates = {SERVICE: (9000.0, 100.0, 5000.0), "plain": (1000.0, 900.0, 4000.0)}
    rows = [under_load(n, bytes_per_s=rate) for n, each in rates.items() for rate in each]
    # Other loads of the same servers are other measurements.
    rows += [replace(under_load(SERVICE, bytes_per_s=1.0), **other) for other in (
        {"lengths": "mixed"}, {"loop": "open"}, {"clients": 8}, {"streamed": True},
    )]  # fmt: skip
    found = named(servers.goals(rows, []), PLAIN)
    assert (found.value, found.bound, found.ratio) == (5000.0, 5000.0, 5.0)


def test_a_repeat_without_an_answer_is_not_passed_over() -> None:
    rows = [under_load(SERVICE, 1, latency_ms=found) for found in (spread(1.0), None)]
    goals = servers.goals(rows, [inside(1, ms=20.0)])
    assert named(goals, "completion of 200 bytes, one client, p50").met is None


@pytest.mark.parametrize(
    ("streamed", "name"),
    [
        (False, "whole answers at each rate up to 95% of capacity, p50"),
        (True, "streamed, first byte, p99 up to 80% of capacity"),
    ],
)
def test_a_rate_at_which_nobody_was_answered_is_not_passed_over(streamed: bool, name: str) -> None:
    def row(target: str, found: Spread | None) -> LoadRow:
        spreads = {"latency_ms": found, "first_byte_ms": found}
        return under_load(target, streamed=streamed, loop="open", **spreads)

    quick, slow = spread(1.0, 1.0), spread(2.0, 2.0)
    rows = [row(SERVICE, quick), row(PEERS[0], slow)]
    assert named(servers.open_goals({0.5: rows}), name).met is True
    silent = [row(SERVICE, None), row(PEERS[0], slow)]
    assert named(servers.open_goals({0.5: rows, 0.8: silent}), name).met is None


def test_plans_name_servers_that_exist() -> None:
    assert set(servers.QUICK.servers) <= set(SERVERS)
    assert set(servers.FULL.servers) == set(SERVERS)
    assert set(command.QUICK_SECTIONS) <= set(command.SECTIONS)
    for plan in (servers.QUICK, servers.FULL):
        assert {servers.ALONE, servers.MANY} <= {*plan.clients} & {*servers.FULL.service_clients}


def test_a_server_is_asked_at_the_rates_it_can_do_and_at_one_it_cannot() -> None:
    """Of the service's rates, those up to the first beyond 1.2 times what the peer can do."""
    shares = servers.FULL.shares
    rates = [50.0, 80.0, 95.0, 120.0]
    assert offered(100.0, rates, shares) == rates
    assert offered(10.0, rates, shares) == [50.0]
    assert offered(50.0, rates, shares) == [50.0, 80.0]
    assert offered(80.0, rates, shares) == rates
    assert offered(0.0, rates, shares) == [50.0]


def test_capacity_is_the_median_with_32_clients_of_streams_or_of_whole_answers() -> None:
    rows = [under_load(SERVICE, streamed=True, requests_per_s=r) for r in (90.0, 10.0, 70.0)]
    rows += [under_load(SERVICE, requests_per_s=500.0)]
    rows += [under_load(SERVICE, 1, streamed=True, requests_per_s=500.0)]
    assert capacity(SERVICE, rows, streamed=True) == 70.0
    assert capacity(SERVICE, rows, streamed=False) == 500.0


def starting(full: bool) -> Any:
    yield "start", start(1.5)
    yield from memory.goals(resident(1000.0), start(1.5))


def test_a_section_is_kept_as_soon_as_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run breaks off in its second section; the first is there, with rows and goals."""

    def interrupted(full: bool) -> Any:
        raise KeyboardInterrupt
        yield

    sections = {"memory": starting, "training": interrupted}
    monkeypatch.setattr(command, "SECTIONS", sections)
    arguments = ["--sections", "memory,training", "--out", str(tmp_path)]
    with pytest.raises(KeyboardInterrupt):
        command.main(arguments)
    kept = json.loads((tmp_path / "bench.json").read_text())["memory"]
    assert kept["command"] == " ".join(["python -m bench", *arguments])
    assert {"numpy", "fastapi"} <= kept["versions"].keys()
    assert kept["rows"] == {"start": [{"models": ["a", "b"], "median_s": 1.5, "all_s": [1.5]}]}
    assert {"machine", "versions"} <= kept.keys()
    assert [g["met"] for g in kept["goals"]] == [True, False]
    assert "median_s 1.5" in capsys.readouterr().out


def test_a_run_ends_with_its_goals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sections = {"http": lambda full: servers.goals([], []), "memory": starting}
    monkeypatch.setattr(command, "SECTIONS", sections)
    command.main(["--sections", "http,memory", "--out", str(tmp_path)])
    *_, unknown, met, missed, last = capsys.readouterr().out.splitlines()
    assert met.startswith("met    start to ready")
    assert missed.startswith("MISSED resident memory")
    assert "not measured" in unknown
    assert last == "1 of 2 goals met, 7 not measured"


def test_a_full_section_has_a_file_and_a_quick_one_a_place_beside_the_others(
    tmp_path: Path,
) -> None:
    for section in ("step", "http", "step"):
        command.keep(section, {"rows": {}}, tmp_path, full=False)
    assert set(json.loads((tmp_path / "bench.json").read_text())) == {"step", "http"}
    file = command.keep("step", {"rows": {}}, tmp_path / "new", full=True)
    assert json.loads(file.read_text()) == {"rows": {}}
    assert file == tmp_path / "new" / "bench" / "step.json"


@pytest.mark.parametrize(
    ("arguments", "sections"),
    [
        ([], command.QUICK_SECTIONS),
        (["--all"], tuple(command.SECTIONS)),
        (["--all", "--sections", "memory,step"], ("step", "memory")),
    ],
    ids=str,
)
def test_sections_are_measured_in_the_order_of_the_list(
    arguments: list[str], sections: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured, drawn = list[tuple[str, bool]](), list[Path]()

    def noted(section: str, *, full: bool) -> Any:
        measured.append((section, full))
        return {}, []

    monkeypatch.setattr(command, "_measure", noted)
    monkeypatch.setattr(command.plots, "PICTURES", {"step": lambda _, to: drawn.append(to)})
    monkeypatch.setattr(command, "find_spec", lambda package: package)  # every peer is there
    command.main([*arguments, "--out", str(tmp_path)])
    assert measured == [(section, "--all" in arguments) for section in sections]
    assert drawn == [tmp_path / "bench"] * ("--all" in arguments)


def test_a_quick_run_wants_no_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda package: None)
    monkeypatch.setattr(command, "SECTIONS", {"memory": starting})
    command.main(["--sections", "memory", "--out", str(tmp_path)])


def test_an_unknown_section_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--sections", "step,gpu"])
    assert "'gpu' is not one of step, http" in capsys.readouterr().err
