"""What a service is measured beside has as much of the machine as it, and no more to do."""

import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
import uvicorn
from torch import nn

from bench.peers import batch
from bench.peers.launch import end, family
from service.engine.threads import usable_cores
from service.settings import Settings

_PARENT = """
import subprocess, sys
child = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
with subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
    worker.stdout.readline()
    print(flush=True)
    sys.stdin.read()
"""


def test_batches_are_run_by_all_cores_and_by_the_graph_of_usual_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = list[tuple[str, dict[str, Any]]]()
    scan = SimpleNamespace(plain="plain.onnx", filtered="filtered.onnx")
    manifest = SimpleNamespace(ports=None, graphs=SimpleNamespace(scan=scan))
    monkeypatch.setattr(batch, "read_artifact", lambda _: manifest)
    monkeypatch.setattr(batch, "ServedGraph", lambda path, _, **how: made.append((path.name, how)))
    batch.BatchWriter(Path("artifact"))
    assert made == [("plain.onnx", {"scan": True, "threads": usable_cores()})]


def test_streams_of_peers_come_in_the_portions_of_the_service() -> None:
    usual = [Settings.model_fields[n].default for n in ("first_chunk_steps", "chunk_steps")]
    assert usual == [batch.FIRST_CHUNK_STEPS, batch.CHUNK_STEPS]
    assert list(batch.portions(50, 8)) == [(0, 8), (8, 40), (40, 50)]


def test_the_plain_peer_has_all_cores_and_the_step_of_usual_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, filtered, served = list[int](), list[bool](), list[dict[str, Any]]()

    def step(_: nn.Module, *, filtered: bool) -> Any:
        asked.append(filtered)
        return SimpleNamespace(row_ports=[])

    asked = filtered
    monkeypatch.setattr("export.artifact.read_artifact", lambda _: None)
    monkeypatch.setattr("export.artifact.load_model", lambda *_: nn.Identity())
    monkeypatch.setattr("models.generation.LanguageStep", step)
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    monkeypatch.setattr(uvicorn, "run", lambda _, **how: served.append(how))
    runpy.run_path("bench/peers/plain_peer.py", run_name="__main__")
    assert (threads, filtered) == ([usable_cores()], [False])
    assert served[0]["port"] == batch.PORT


def test_what_a_server_has_started_ends_with_it() -> None:
    """Some frameworks leave their workers to themselves."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    server = psutil.Popen([sys.executable, "-c", _PARENT], **pipes)
    server.stdout.readline()
    _, worker = family(server.pid)
    end(server, 0.1)
    left = worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
    if left:
        worker.kill()
    server.stdin.close()
    server.stdout.close()
    assert not left
