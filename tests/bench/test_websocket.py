"""The measurement of single steps over the WebSocket."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import websocket
from bench.goal import Goal
from bench.peers.launch import launch
from bench.target import Target
from contract.golden import Arrays
from service.engine.runtime import Runtime


def test_in_process_every_step_reads_the_byte_that_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the model's beginning on, by the graph that the service takes, with the cores it has."""
    steps, loaded = list[tuple[int, bool]](), list[int]()

    class Runner:
        def __init__(self, _: object, runtime: Runtime) -> None:
            assert runtime.threads == 3

        def load(self, slot: int, state: Arrays) -> None:
            loaded.append(slot)

        def run(self, slots: list[int], columns: Arrays, row: Arrays, *, filtered: bool) -> None:
            assert (slots, filtered) == (loaded, False)
            steps.append((int(columns["forced"][0, 0]), bool(columns["force"][0, 0])))

    task = SimpleNamespace(
        columns={"forced": np.zeros((1, 1), np.int64), "force": np.zeros((1, 1), bool)}, row={}
    )
    monkeypatch.setattr(websocket, "load_artifact", lambda _: SimpleNamespace(initial_state=dict))
    monkeypatch.setattr(websocket, "ScanRunner", Runner)
    monkeypatch.setattr(websocket, "task_of", lambda *_, steps: task)
    step = websocket._step(3)
    for byte in b"To":
        step(byte)
    assert loaded == [0]
    assert steps == [(byte, True) for byte in b"To"]


@pytest.mark.parametrize(
    ("way", "sent", "answer", "other"),
    [
        (websocket._round_trip, '{"bytes": [84]}', '{"log_probabilities": []}', '{"error": {}}'),
        (websocket._binary_round_trip, b"T", bytes(4 * 257), bytes(4 * 256)),
    ],
    ids=["JSON", "binary"],
)
def test_a_round_trip_sends_its_byte_and_has_all_numbers_and_their_step(
    way: Any, sent: str | bytes, answer: str | bytes, other: str | bytes
) -> None:
    came, told = [answer, other], list[str | bytes]()
    socket: Any = SimpleNamespace(send=told.append, recv=lambda: came.pop(0))
    assert way(socket)(ord("T")) == answer
    assert told == [sent]
    with pytest.raises(RuntimeError, match="the service says"):
        way(socket)(ord("T"))


def test_each_way_has_its_turns_after_a_rest_and_is_timed_when_it_is_warm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of them with all cores."""
    now_s, rests, read = [0.0], list[float](), bytearray()
    asked = list[tuple[str, dict[str, str]]]()

    def way(seconds: float) -> Callable[[int], object]:
        turns = count()

        def step(byte: int) -> None:
            read.append(byte)
            now_s[0] += seconds if next(turns) >= 100 else 1000.0

        return step

    @contextmanager
    def started(name: str, settings: dict[str, str]) -> Iterator[Target]:
        asked.append((name, settings))
        yield Target(name, 1)

    clock = SimpleNamespace(perf_counter=lambda: now_s[0], sleep=rests.append)
    monkeypatch.setattr(websocket, "time", clock)
    monkeypatch.setattr(websocket, "usable_cores", lambda: 3)
    monkeypatch.setattr(websocket, "launch", started)
    monkeypatch.setattr(websocket, "connect", lambda *_, **__: nullcontext())
    monkeypatch.setattr(websocket, "_begin", lambda _: None)
    monkeypatch.setattr(websocket, "_round_trip", lambda _: way(3e-6))
    monkeypatch.setattr(websocket, "_binary_round_trip", lambda _: way(2e-6))
    monkeypatch.setattr(websocket, "_step", lambda threads: way(threads / 3e6))
    found = list(websocket.measure(False, steps=200))
    rows = [each[1] for each in found if not isinstance(each, Goal)]
    assert [(row.way, row.p50_us, row.p99_us, row.steps, row.threads) for row in rows] == [
        ("websocket", 3, 3, 200, 3),
        ("websocket, binary", 2, 2, 200, 3),
        ("in process", 1, 1, 200, 3),
    ]
    assert rests == [websocket._SETTLE_S] * 9
    assert asked == [("service", {"EVENKEEL_THREADS": "3"})]
    assert len(set(read)) > 10
    assert sum(isinstance(each, Goal) for each in found) == 2


@pytest.mark.long
def test_every_way_has_as_many_steps_as_were_asked_for(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the warm-up are not among them, and 200 are too few for one in a thousand."""
    unproved = {"EVENKEEL_ALLOW_UNPROVED": "1"}

    def started(name: str, settings: dict[str, str]) -> AbstractContextManager[Target]:
        return launch(name, artifacts=artifacts, settings=settings | unproved)

    monkeypatch.setattr(websocket, "launch", started)
    monkeypatch.setattr(websocket, "ARTIFACTS", artifacts)
    monkeypatch.setattr(websocket, "MODEL", "letters")
    monkeypatch.setattr(websocket, "_SETTLE_S", 0.0)
    found = list(websocket.measure(False, steps=200))
    rows = [each[1] for each in found if not isinstance(each, Goal)]
    assert [row.way for row in rows] == ["websocket", "websocket, binary", "in process"]
    for row in rows:
        assert (row.steps, row.p999_us) == (200, None)
        assert 0 < row.p50_us <= row.p90_us <= row.p99_us
