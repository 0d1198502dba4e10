"""The measurement of single steps over the WebSocket."""

from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bench import websocket
from bench.goal import Goal
from bench.peers.launch import launch
from bench.target import Target
from contract.golden import Arrays


def test_in_process_every_step_reads_the_byte_that_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = list[tuple[int, bool]]()

    class Runner:
        def __init__(self, *_: object) -> None: ...

        def load(self, slot: int, state: Arrays) -> None: ...

        def run(self, slots: list[int], columns: Arrays, row: Arrays, *, filtered: bool) -> None:
            steps.append((int(columns["forced"][0, 0]), bool(columns["force"][0, 0])))

    task = SimpleNamespace(
        columns={"forced": np.zeros((1, 1), np.int64), "force": np.zeros((1, 1), bool)}, row={}
    )
    monkeypatch.setattr(websocket, "load_artifact", lambda _: SimpleNamespace(initial_state=dict))
    monkeypatch.setattr(websocket, "ScanRunner", Runner)
    monkeypatch.setattr(websocket, "task_of", lambda *_, steps: task)
    step = websocket._step(1)
    for byte in b"To":
        step(byte)
    assert steps == [(byte, True) for byte in b"To"]


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
