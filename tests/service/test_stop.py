"""A service that is told to stop says so first, finishes what it can, and tells the others."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from socket import create_connection
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request
from websockets.sync.client import connect

from service.app import create_app
from service.engine.engine import _PATIENCE_S
from service.errors import NotReady
from service.http import admin
from service.http.sockets import WebSocketConnection
from service.server import Server
from tests.service.http.wire import LATE_S, SOCKET, Wire
from tests.service.processes import Stream, expects_signals, ready, spawned, started
from tests.service.serving import eventually, listening, running, settings

_ENDLESS = {"model": "letters", "max_tokens": 50_000_000}


def test_readiness_turns_red_first_while_requests_are_accepted(letters: Path) -> None:
    with started(letters, shutdown_delay_s=60) as service:
        service.tell(signal.SIGTERM)
        assert eventually(lambda: service.status("/readyz") == 503)
        assert service.status("/livez") == 200
        assert service.post(max_tokens=5).status_code == 200
        assert service.running()
        service.tell(signal.SIGTERM)  # the second waits for nothing
        assert service.ended(timeout_s=10) == 0


def test_it_stops_once_load_balancers_have_had_their_time_to_notice(letters: Path) -> None:
    chosen = settings(letters, shutdown_delay_s=60)
    server = Server(create_app(chosen), chosen)
    assert not asyncio.run(server.on_tick(0))
    server.handle_exit(signal.SIGTERM, None)
    assert not asyncio.run(server.on_tick(1))
    assert server._told_s is not None
    server._told_s -= 60
    assert asyncio.run(server.on_tick(2))


@pytest.mark.parametrize("change", [admin.load, admin.reload, admin.unload])
def test_a_service_that_stops_changes_no_model(change: Any) -> None:
    state = SimpleNamespace(models=SimpleNamespace(stopping=True))
    with pytest.raises(NotReady):
        asyncio.run(change(SimpleNamespace(app=SimpleNamespace(state=state)), "letters"))


def test_an_application_that_has_ended_draws_nothing(letters: Path) -> None:
    with running(settings(letters)) as service:
        pass
    with pytest.raises(NotReady):
        asyncio.run(service.app.state.aside.do(lambda: None))


def test_what_runs_is_finished(letters: Path) -> None:
    with started(letters) as service:
        stream = Stream(service, max_tokens=8_000, seed=1)
        service.tell(signal.SIGTERM)
        *texts, done = stream.end()
        assert done == "[DONE]"
        assert json.loads(texts[-1])["choices"][0]["finish_reason"] == "length"
        assert service.ended() == 0


def test_what_was_sent_before_it_stopped_is_answered(letters: Path) -> None:
    """The event loop may have been too busy to hear of it."""
    held, sent = threading.Event(), threading.Event()

    class Busy(Server):
        async def on_tick(self, counter: int) -> bool:
            if counter < 2:
                return False
            held.set()
            assert sent.wait(30)
            return True

    chosen = settings(letters).model_copy(update={"port": 0})
    server = Busy(create_app(chosen), chosen)
    thread = threading.Thread(target=uvicorn.Server.run, args=(server,))
    thread.start()
    assert held.wait(60)
    address = server.servers[0].sockets[0].getsockname()
    with ExitStack() as stack:
        clients = [stack.enter_context(create_connection(address, 30)) for _ in range(5)]
        for client in clients:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sent.set()
        answers = [client.recv(15) for client in clients]
    thread.join(30)
    assert answers == [b"HTTP/1.1 200 OK"] * len(clients)
    assert not thread.is_alive()


def test_what_cannot_be_finished_ends_with_an_error(letters: Path) -> None:
    with started(letters, drain_timeout_s=0) as service:
        stream = Stream(service, **_ENDLESS)
        whole: list[httpx.Response] = []

        def ask() -> None:
            url = f"{service.url}/v1/completions"
            whole.append(httpx.post(url, json=_ENDLESS, timeout=30))

        thread = threading.Thread(target=ask)
        thread.start()
        running = 'requests_running{model="letters"} 2.0'
        assert eventually(lambda: running in httpx.get(f"{service.url}/metrics").text)
        service.tell(signal.SIGTERM)
        *_, last, done = stream.end()
        assert done == "[DONE]"
        assert json.loads(last)["error"]["code"] == "not_ready"
        thread.join(30)
        assert whole[0].status_code == 503
        assert whole[0].json()["error"]["code"] == "not_ready"
        assert service.ended() == 0


def test_pictures_that_nobody_has_begun_to_draw_end_with_an_error(inks: Path) -> None:
    with started(inks, drain_timeout_s=0) as service, ThreadPoolExecutor(24) as pool:
        # Of little ink, which has been written by the time that the first is drawn.
        large = {"text": "a" + "\n" * 39 + "a", "format": "png", "width": 3000, "line_height": 100}

        def draw(_: int) -> httpx.Response:
            return httpx.post(f"{service.url}/v1/handwriting", json=large, timeout=60)

        asked = [pool.submit(draw, number) for number in range(24)]
        assert eventually(lambda: any(one.done() for one in asked))
        service.tell(signal.SIGTERM)
        answers = [one.result() for one in asked]
        assert service.ended() == 0
    told = {answer.json()["error"]["code"] for answer in answers if answer.status_code != 200}
    assert {answer.status_code for answer in answers} == {200, 503}
    assert told == {"not_ready"}


def test_at_a_second_signal_those_who_wait_are_told(letters: Path) -> None:
    with started(letters) as service, ThreadPoolExecutor(8) as pool:

        def ask(_: int) -> httpx.Response:
            return httpx.post(f"{service.url}/v1/completions", json=_ENDLESS, timeout=30)

        asked = [pool.submit(ask, number) for number in range(8)]
        stream = Stream(service, **_ENDLESS)
        running = 'requests_running{model="letters"} 9.0'
        assert eventually(lambda: running in httpx.get(f"{service.url}/metrics").text)
        service.tell(signal.SIGTERM)
        assert eventually(lambda: service.status("/readyz") != 200)  # or both would be one
        service.tell(signal.SIGTERM)
        *_, last, done = stream.end()
        assert done == "[DONE]"
        assert json.loads(last)["error"]["code"] == "not_ready"
        codes = {one.result().json()["error"]["code"] for one in asked}
        assert codes == {"not_ready"}
        assert service.ended() == 0


def test_at_a_second_signal_what_is_stuck_is_left(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.server._LAST_WORDS_S", 0.01)
    chosen = settings(letters)
    server = Server(create_app(chosen), chosen)

    async def nothing(*_: Any) -> None: ...

    async def stop() -> None:
        server._watching = asyncio.create_task(nothing())
        stuck = asyncio.create_task(asyncio.Event().wait())
        server.server_state.tasks.add(stuck)  # type: ignore[arg-type]
        await asyncio.wait_for(server.shutdown(), LATE_S)
        stuck.cancel()

    monkeypatch.setattr(uvicorn.Server, "shutdown", nothing)
    server.lifespan = SimpleNamespace(shutdown=nothing)  # type: ignore[assignment]
    server.force_exit = True
    asyncio.run(stop())


def _signal_while_it_loads(process: "subprocess.Popen[str]", sig: signal.Signals) -> None:
    assert eventually(lambda: expects_signals(process.pid))  # its first act
    time.sleep(0.1)  # of half a second and more that it loads
    process.send_signal(sig)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_it_loads(letters: Path, sig: signal.Signals) -> None:
    with spawned(letters) as (process, _):
        _signal_while_it_loads(process, sig)
        _, err = process.communicate(timeout=30)
        assert "Traceback" not in err
        assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_within_an_import_is_not_told_as_an_exception(number: int) -> None:
    code = (
        "import os, runpy, sys\n"
        "class Importing:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'pydantic':\n"
        "            try: os.kill(os.getpid(), int(sys.argv[1]))\n"
        "            finally: print('told')\n"
        "sys.meta_path.insert(0, Importing())\n"
        "runpy.run_module('service', run_name='__main__')"
    )
    command = [sys.executable, "-c", code, str(int(number))]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_an_idle_service_ends_with_0(letters: Path) -> None:
    """And a hang-up ends none, not even while it loads."""
    with spawned(letters) as (process, url):
        _signal_while_it_loads(process, signal.SIGHUP)
        assert eventually(lambda: ready(url))
        assert httpx.get(f"{url}/v1/models").status_code == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert " INFO service.models: letters: attestation ok" in err
    # Probes are left out of the log, and nobody else tells.
    assert [json.loads(line)["path"] for line in out.splitlines()] == ["/v1/models"]
    assert "GET /" not in err


def test_one_whose_standard_files_are_closed_ends_with_0(letters: Path) -> None:
    """The event loop's own were taken for them, which it may not close."""
    with spawned(letters, shut=(0, 1, 2)) as (process, url):
        assert eventually(lambda: ready(url))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0


def test_one_that_is_stuck_keeps_none_of_the_others_from_their_last_words(inks: Path) -> None:
    with running(settings(inks)) as service, ThreadPoolExecutor(1) as pool:
        models = service.app.state.models
        stuck, other = (models[name].engine for name in ("letters", "scrawl"))
        hold, runner = threading.Event(), stuck._slots.runner
        runner.run = lambda *_, **__: hold.wait(20) and {}
        asked = pool.submit(service.post, max_tokens=5)
        assert eventually(lambda: stuck.stalled_s > 0.05)
        stopping = threading.Thread(target=models.stop)
        stopping.start()
        began_s = time.monotonic()
        assert eventually(lambda: not other._thread.is_alive())
        assert time.monotonic() - began_s < 4  # nobody waited for the other
        assert stuck._thread.is_alive()
        hold.set()
        stopping.join(20)
        assert asked.result().status_code >= 500


def test_callers_of_models_that_are_stuck_hear_it_before_the_service_ends(
    inks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sooner_s = 1.6
    monkeypatch.setattr("service.engine.engine._PATIENCE_S", _PATIENCE_S - sooner_s)
    bodies = {"completions": {"model": "letters"}, "handwriting": {"model": "scrawl", "text": "a"}}
    hold = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        with listening(settings(inks, drain_timeout_s=0)) as (url, app):
            engines = [app.state.models[body["model"]].engine for body in bodies.values()]
            for engine in engines:
                engine._slots.runner.run = lambda *_, **__: hold.wait(20) and {}
            asked = [
                pool.submit(httpx.post, f"{url}/v1/{path}", json=body, timeout=30)
                for path, body in bodies.items()
            ]
            assert eventually(lambda: all(engine.stalled_s > 0.05 for engine in engines))
            began_s = time.monotonic()
        ended_s = time.monotonic()
        hold.set()
        answers = [one.result() for one in asked]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert {answer.json()["error"]["message"] for answer in answers} == {"the model is stuck"}
    # As a grace period has to reckon with, however many there are.
    assert ended_s - began_s + sooner_s < 7


def test_whom_a_stop_tells_is_looked_up_where_nothing_changes_meanwhile(letters: Path) -> None:
    """From another thread, a folder that goes just then would keep it from telling anybody."""
    chosen = settings(letters, drain_timeout_s=0)
    app = create_app(chosen)
    models, looked = app.state.models, list[threading.Thread]()
    find = models._engines
    models._engines = lambda: looked.append(threading.current_thread()) or find()
    models.start()
    assert all(model.engine.attested.wait(20) for model in models)  # or one may be given up
    asyncio.run(Server(app, chosen)._end_jobs())
    assert looked == [threading.main_thread()]
    assert not any(model.engine._thread.is_alive() for model in models)


def test_a_socket_that_opens_at_the_very_end_is_told_so(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens = WebSocketConnection.handle_connect
    with listening(settings(letters)) as (url, app):

        def at_the_end(self: WebSocketConnection, event: Request) -> None:
            opens(self, event)  # whose session begins in the next round of the event loop
            app.state.sessions.end()
            self.shutdown()

        monkeypatch.setattr(WebSocketConnection, "handle_connect", at_the_end)
        with connect(f"{url.replace('http', 'ws')}/v1/online") as online:
            assert json.loads(online.recv(timeout=20)) == {"closing": "the service is stopping"}
            with pytest.raises(ConnectionClosed) as closed:
                online.recv(timeout=20)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012


def test_who_never_answers_that_its_socket_is_closed_does_not_delay_a_stop(
    letters: Path,
) -> None:
    with ExitStack() as stack:
        with listening(settings(letters)) as (url, _):
            wire = stack.enter_context(closing(Wire(url).send(SOCKET)))
            wire.until(b"\r\n\r\n")
            wire.send(b"\x81\x81" + bytes(4) + b"1").until(b"\x88")
            began_s = time.monotonic()
        assert time.monotonic() - began_s < LATE_S / 2  # for so long its answer is waited for


def test_a_socket_is_closed_with_1012(letters: Path) -> None:
    with ExitStack() as stack:
        with listening(settings(letters)) as (url, _):
            online = stack.enter_context(connect(f"{url.replace('http', 'ws')}/v1/online"))
            online.send(json.dumps({"model": "letters"}))
            online.recv()
        assert json.loads(online.recv(timeout=20)).keys() == {"closing", "state"}
        with pytest.raises(ConnectionClosed) as closed:
            online.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
