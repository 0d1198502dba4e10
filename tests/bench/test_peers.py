"""What a service is measured beside has as much of the machine as it, and no more to do."""

import json
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
import uvicorn
from torch import nn

from bench.peers import batch
from bench.peers.batch import Request
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


class _Writer:
    """Stands for the session: what each request gets, whole and after two chunks."""

    def whole(self, requests: list[Request]) -> list[str]:
        return [f"{request.seed}" for request in requests]

    def pieces(self, requests: list[Request]) -> Any:
        yield [f"{request.seed}" for request in requests]
        yield ["" for _ in requests]


_ASKED = {"prompt": "a", "max_tokens": 3, "seed": 7}


@pytest.mark.parametrize("streamed", [False, True])
def test_litserve_has_one_worker_that_gathers_whole_batches(
    streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, served, ran = list[dict[str, Any]](), list[tuple[Any, Any]](), list[dict[str, Any]]()

    class LitAPI:
        def __init__(self, **options: Any) -> None:
            made.append(options)

    def server(api: Any, **options: Any) -> Any:
        served.append((api, options))
        return SimpleNamespace(run=lambda **how: ran.append(how))

    stands_for = SimpleNamespace(LitAPI=LitAPI, LitServer=server)
    monkeypatch.setitem(sys.modules, "litserve", stands_for)
    monkeypatch.delitem(sys.modules, "bench.peers.litserve_peer", raising=False)
    module: Any = import_module("bench.peers.litserve_peer")
    monkeypatch.setattr(module, "BatchWriter", _Writer)
    module.main(streamed=streamed)
    assert made == [
        {"max_batch_size": 32, "batch_timeout": 0.005, "api_path": "/v1/completions",
         "stream": streamed}
    ]  # fmt: skip
    ((api, options),), (how,) = served, ran
    assert (options["devices"], options["workers_per_device"]) == (1, 1)
    assert options["timeout"] > 60  # it waits as long as a client does
    assert (how["port"], how["num_api_servers"]) == (batch.PORT, 1)
    api.setup("cpu")
    asked = [api.decode_request(_ASKED | {"seed": seed}) for seed in (7, 8)]
    if not streamed:
        assert [api.encode_response(text) for text in api.predict(asked)] == [
            {"text": "7"}, {"text": "8"}
        ]  # fmt: skip
        return
    streams = list(map("".join, zip(*api.encode_response(api.predict(asked)), strict=True)))
    for seed, stream in zip((7, 8), streams, strict=True):
        event, done, end = stream.split("\n\n")
        assert json.loads(event.removeprefix("data: ")) == {"text": str(seed)}
        assert (done, end) == ("data: [DONE]", "")


def test_bentoml_has_one_worker_that_turns_nobody_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses whom it expects to serve too late."""
    told = list[dict[str, Any]]()

    def decorated(**options: Any) -> Any:
        told.append(options)
        return lambda of: of

    monkeypatch.setitem(sys.modules, "bentoml", SimpleNamespace(service=decorated, api=decorated))
    monkeypatch.delitem(sys.modules, "bench.peers.bentoml_peer", raising=False)
    module: Any = import_module("bench.peers.bentoml_peer")
    monkeypatch.setattr(module, "BatchWriter", _Writer)
    service, api = told
    assert (service["workers"], service["traffic"]["timeout"] > 60) == (1, True)
    assert (api["route"], api["batchable"], api["max_batch_size"]) == ("/v1/completions", True, 32)
    assert api["max_latency_ms"] >= 10_000
    assert module.Peer().complete([_ASKED, _ASKED | {"seed": 8}]) == [{"text": "7"}, {"text": "8"}]


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
