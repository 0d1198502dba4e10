"""What is measured is what its result says, whoever measures it."""

from pathlib import Path

import psutil
import pytest

from bench import in_process
from bench.peers.launch import launch
from bench.target import Server
from service.settings import Settings

_FILES = Server(("http.server", "{port}", "--bind", "127.0.0.1"), health="/LICENSE")


def test_a_server_has_the_settings_of_a_measurement_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_KEYS", "keys.toml")
    monkeypatch.setenv("EVENKEEL_SLOTS", "2")
    with launch("files", server=_FILES, settings={"EVENKEEL_SLOTS": "3"}) as target:
        had = psutil.Process(target.pid).environ()
    assert (had.get("EVENKEEL_KEYS"), had["EVENKEEL_SLOTS"]) == (None, "3")


def test_in_process_chunks_are_those_of_the_server(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "_LEAST_S", 0)
    monkeypatch.setenv("EVENKEEL_CHUNK_STEPS", "5")
    usual = Settings.model_fields["chunk_steps"].default
    assert in_process.InProcess(artifacts, "letters").measure(1).chunk == usual
