"""The proxy before replicas: it tries another before the first byte and never after it, holds no
event back, and leaves replicas that stop alone. Without the program those are skipped."""

import ipaddress
import json
import re
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from inspect import signature
from pathlib import Path
from select import select
from typing import Any

import httpx
import pytest
import uvicorn

from service.errors import NotReady
from service.settings import Settings
from tests.deploy.composed import read
from tests.scale import fleets, haproxy
from tests.scale.haproxy import CONFIG, HAProxy
from tests.scale.waiting import wait_for

_ROOT = Path(__file__).parents[2]
_OVERRIDE = _ROOT / "deploy" / "scale" / "docker-compose.yml"
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_LAST_WORDS_S = 7


def _whole(status: int, content: str) -> bytes:
    head = f"HTTP/1.1 {status} Told\r\ncontent-length: {len(content)}\r\n\r\n"
    return (head + content).encode()


def _event(content: str) -> bytes:
    data = f"data: {content}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


class Replica:
    """Answers by script: what it sends before it hangs up, waiting for `go_on` between parts."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.parts: list[bytes] = [_whole(200, "ok")]
        self.heads: list[str] = []
        self.ready = True
        self.probes = 0  # that have come, each of them answered after so long
        self.probed_s = 0.0
        self.go_on = threading.Event()
        self.left = threading.Event()  # whoever asked, before the answer had ended


@contextmanager
def _replica() -> Iterator[Replica]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b"".join(iter(self.rfile.readline, b"\r\n")).decode()
            if head.startswith("GET /readyz"):
                replica.probes += 1
                time.sleep(replica.probed_s)
                self.wfile.write(_whole(200 if replica.ready else 503, ""))
                return
            length = re.search(r"content-length: (\d+)", head)
            self.rfile.read(int(length[1]) if length else 0)
            replica.heads.append(head)
            for number, part in enumerate(replica.parts):
                while number and not replica.go_on.wait(0.02):
                    if select([self.connection], [], [], 0)[0]:  # nothing more is asked
                        replica.left.set()
                        return
                self.wfile.write(part)
                self.wfile.flush()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        replica = Replica(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield replica
        finally:
            replica.go_on.set()
            server.shutdown()
            thread.join()


class Front:
    """HAProxy and the two replicas behind it."""

    def __init__(self, proxy: HAProxy, replicas: list[Replica]) -> None:
        self.proxy, self.replicas = proxy, replicas
        self.url = f"http://127.0.0.1:{proxy.port}/v1/completions"

    def post(self, **more: Any) -> httpx.Response:
        return httpx.post(self.url, json={"prompt": "a"}, timeout=10, trust_env=False, **more)

    def asked(self) -> list[int]:
        return [len(replica.heads) for replica in self.replicas]


@pytest.fixture(scope="module")
def program() -> str:
    try:
        return haproxy.program()
    except RuntimeError as why:
        pytest.skip(str(why))


@pytest.fixture
def front(program: str, tmp_path: Path) -> Iterator[Front]:
    with ExitStack() as stack:
        replicas = [stack.enter_context(_replica()) for _ in range(2)]
        proxy = stack.enter_context(haproxy.running(tmp_path, hasty=True))
        for place, replica in enumerate(replicas, 1):
            proxy.add(place, replica.port)
        wait_for("both replicas", lambda: proxy.up() == 2)
        yield Front(proxy, replicas)


_SLOW_TO_LISTEN = r"""
import contextlib, re, socket, sys, time

(path,) = re.findall(r"stats socket (\S+)", open(sys.argv[-1]).read())
with socket.socket(socket.AF_UNIX) as admin:
    admin.bind(path)
    time.sleep(0.3)
    admin.listen()
    while True:
        with admin.accept()[0] as who, contextlib.suppress(OSError):
            who.sendall(who.recv(100))
"""


def test_a_proxy_is_told_something_when_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of its socket is there a moment before, on a busy machine a long one."""
    slow = tmp_path / "haproxy"
    slow.write_text(f"#!{sys.executable}\n{_SLOW_TO_LISTEN}")
    slow.chmod(0o700)
    monkeypatch.setattr(haproxy, "program", lambda: str(slow))
    with haproxy.running(tmp_path) as proxy:
        assert proxy.tell("anything") == "anything\n"


def test_the_configuration_is_valid(program: str) -> None:
    run = subprocess.run([program, "-c", "-f", CONFIG], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "fails", [[], [_whole(503, "not now")]], ids=["hangs up without a byte", "has too much to do"]
)
def test_before_the_first_byte_another_replica_is_asked(front: Front, fails: list[bytes]) -> None:
    front.replicas[0].parts = fails
    answers = [front.post() for _ in range(4)]
    assert [(answer.status_code, answer.text) for answer in answers] == [(200, "ok")] * 4
    assert front.asked()[0] >= 1
    assert front.asked()[1] == 4


def test_a_replica_that_is_gone_is_asked_nothing(front: Front) -> None:
    front.proxy.tell("set server evenkeel/replica1 addr 127.0.0.1 port 9")
    assert [front.post().status_code for _ in range(3)] == [200] * 3


def test_what_every_replica_refuses_comes_back_as_it_was_told(front: Front) -> None:
    for replica in front.replicas:
        replica.parts = [_whole(503, "too much to do")]
    answer = front.post()
    assert (answer.status_code, answer.text) == (503, "too much to do")
    assert min(front.asked()) >= 1


def test_without_any_replica_the_proxy_answers_as_one_that_is_not_ready(front: Front) -> None:
    for replica in front.replicas:
        replica.ready = False
    wait_for("no replica", lambda: front.proxy.up() == 0)
    answer = front.post()
    not_ready = NotReady("no replica is ready")
    assert (answer.status_code, answer.json()) == (not_ready.status, not_ready.body())
    assert answer.headers["Retry-After"] == str(not_ready.retry_after_s)


@pytest.mark.parametrize("status", [400, 409, 429, 500, 504])
def test_what_is_wrong_with_a_request_is_told_by_the_first(front: Front, status: int) -> None:
    for replica in front.replicas:
        replica.parts = [_whole(status, "told")]
    assert front.post().status_code == status
    assert sum(front.asked()) == 1


def test_a_request_with_a_state_is_asked_again_as_a_whole(front: Front) -> None:
    """A token has some 9,000 characters, and ink may come beside it."""
    front.replicas[0].parts = [_whole(503, "not now")]
    body = {"prompt": "a", "state": "x" * 25_000}
    answers = [httpx.post(front.url, json=body, timeout=10, trust_env=False) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert front.asked()[0] >= 1


def test_after_the_first_byte_nobody_else_is_asked(front: Front) -> None:
    for replica in front.replicas:
        replica.parts = [_STREAM + _event("1")]  # and hangs up
    got = []
    with (
        pytest.raises(httpx.RemoteProtocolError),
        httpx.stream("POST", front.url, json={}, timeout=10, trust_env=False) as answer,
    ):
        got.extend(answer.iter_lines())
    assert sum(front.asked()) == 1


def test_an_event_arrives_before_the_next_is_written(front: Front) -> None:
    for replica in front.replicas:
        replica.parts = [_STREAM + _event("1"), _event("2") + b"0\r\n\r\n"]
    with httpx.stream("POST", front.url, json={}, timeout=5, trust_env=False) as answer:
        lines = (line for line in answer.iter_lines() if line)
        assert next(lines) == "data: 1"  # nothing more is sent until it has come
        for replica in front.replicas:
            replica.go_on.set()
        assert next(lines) == "data: 2"


def test_a_replica_that_stops_is_left_alone_and_ends_what_it_does(front: Front) -> None:
    stops, stays = front.replicas
    stops.parts = [_STREAM + _event("1"), _event("2") + b"0\r\n\r\n"]
    front.proxy.tell("set server evenkeel/replica2 state drain")
    with httpx.stream("POST", front.url, json={}, timeout=10, trust_env=False) as answer:
        lines = (line for line in answer.iter_lines() if line)
        assert next(lines) == "data: 1"
        front.proxy.tell("set server evenkeel/replica2 state ready")
        stops.ready = False
        wait_for("one replica", lambda: front.proxy.up() == 1)
        assert [front.post().text for _ in range(3)] == ["ok"] * 3
        assert len(stays.heads) == 3
        stops.go_on.set()
        assert next(lines) == "data: 2"


def test_a_replica_that_is_too_busy_to_say_at_once_that_it_is_ready_is_not_taken_for_dead(
    front: Front,
) -> None:
    for replica in front.replicas:
        replica.probes, replica.probed_s = 0, 0.15  # longer than from one look to the next
    # After the second of them it would be left alone.
    wait_for("a third probe", lambda: all(replica.probes >= 3 for replica in front.replicas))
    assert front.proxy.up() == 2
    assert front.post().status_code == 200


def test_who_comes_is_sent_where_there_is_least_to_do(front: Front) -> None:
    for replica in front.replicas:
        replica.parts = [_STREAM + _event("1"), b"0\r\n\r\n"]
    with httpx.stream("POST", front.url, json={}, timeout=10, trust_env=False) as answer:
        lines = answer.iter_lines()  # it would be closed with them
        assert next(lines) == "data: 1"
        busy = front.asked().index(1)
        front.replicas[1 - busy].parts = [_whole(200, "ok")]
        assert [front.post().text for _ in range(4)] == ["ok"] * 4
        assert front.asked()[busy] == 1
        front.replicas[busy].go_on.set()


def test_who_leaves_before_there_is_an_answer_has_left_the_replica_too(front: Front) -> None:
    for replica in front.replicas:
        replica.parts = [b"", _whole(200, "ok")]
    with closing(HTTPConnection("127.0.0.1", front.proxy.port)) as client:
        client.request("POST", "/v1/completions", b"{}")
        wait_for("the request", lambda: sum(front.asked()) == 1)
    wait_for("its replica", lambda: any(replica.left.is_set() for replica in front.replicas))


def test_who_asks_is_said_by_the_proxy_alone(front: Front) -> None:
    forged = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
    front.post(headers=forged)
    (head,) = [head for replica in front.replicas for head in replica.heads]
    assert re.findall(r"x-forwarded-for: (\S+)", head) == ["127.0.0.1"]
    assert re.findall(r"x-forwarded-proto: (\S+)", head) == ["http"]


def test_time_runs_out_in_the_service_first() -> None:
    told = dict(re.findall(r"^    timeout (\S+) +(\d+)s$", CONFIG.read_text(), re.M))
    defaults = Settings.model_fields
    assert int(told["server"]) > defaults["deadline_s"].default
    assert int(told["client"]) >= defaults["request_timeout_s"].default
    assert int(told["tunnel"]) > defaults["idle_timeout_s"].default
    # A machine that is gone answers no connection: another is tried before a check would find it.
    (falls,) = re.findall(r" fall (\d+) ", CONFIG.read_text())
    assert int(told["connect"]) <= int(falls) * int(told["check"])
    # Once for a head and once for the body, which HAProxy waits for in the service's place.
    assert int(told["http-request"]) >= 2 * defaults["request_timeout_s"].default


def test_the_proxy_puts_no_events_together() -> None:
    """Which would be seen between machines alone."""
    assert re.search(r"^    option http-no-delay$", CONFIG.read_text(), re.M)


def test_as_many_replicas_are_found_as_the_guide_says() -> None:
    (most,) = re.findall(r"server-template replica 1-(\d+) ", CONFIG.read_text())
    assert f"finds up to {most} replicas" in (_ROOT / "docs" / "scaling.md").read_text("utf-8")


def test_a_connection_is_not_used_again_as_the_service_closes_it() -> None:
    (idle_s,) = re.findall(r"pool-purge-delay (\d+)s", CONFIG.read_text())
    assert int(idle_s) < signature(uvicorn.Config).parameters["timeout_keep_alive"].default


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """Those of both files, the second over the first where the test looks."""
    base = read(_ROOT / "docker-compose.yml")["services"]["evenkeel"]
    over = read(_OVERRIDE)
    evenkeel = base | over["services"]["evenkeel"]
    evenkeel["environment"] = base["environment"] | over["services"]["evenkeel"]["environment"]
    return {"evenkeel": evenkeel, "haproxy": over["services"]["haproxy"], "nets": over["networks"]}


def test_the_proxy_alone_is_published(services: dict[str, Any]) -> None:
    assert services["evenkeel"]["ports"] is None
    (published,) = services["haproxy"]["ports"]
    assert published.startswith("${EVENKEEL_PUBLISH:-127.0.0.1:")
    assert published.endswith(":8000")
    assert "    bind :8000\n" in CONFIG.read_text()


def test_replicas_share_a_key_or_do_not_start(services: dict[str, Any]) -> None:
    assert services["evenkeel"]["environment"]["EVENKEEL_STATE_KEY"].startswith(
        "${EVENKEEL_STATE_KEY:?"
    )


def test_the_proxy_has_the_address_that_is_trusted(services: dict[str, Any]) -> None:
    address = services["haproxy"]["networks"]["default"]["ipv4_address"]
    assert json.loads(services["evenkeel"]["environment"]["EVENKEEL_TRUSTED_PROXIES"]) == [address]
    (plan,) = services["nets"]["default"]["ipam"]["config"]
    assert ipaddress.ip_address(address) in ipaddress.ip_network(plan["subnet"])
    assert ipaddress.ip_address(address) not in ipaddress.ip_network(plan["ip_range"])


def test_a_replica_has_time_to_stop(services: dict[str, Any]) -> None:
    environment = services["evenkeel"]["environment"]
    delay_s = environment["EVENKEEL_SHUTDOWN_DELAY_S"]
    drain_s = environment["EVENKEEL_DRAIN_TIMEOUT_S"]
    grace_s = int(services["evenkeel"]["stop_grace_period"].removesuffix("s"))
    assert grace_s >= delay_s + drain_s + _LAST_WORDS_S
    inter_ms, fall = re.search(r"inter (\d+)ms .*fall (\d)", CONFIG.read_text()).groups()
    assert delay_s * 1000 > int(inter_ms) * int(fall)


def test_the_proxy_has_time_to_stop_by_itself(services: dict[str, Any]) -> None:
    """At SIGUSR1 what is under way may end, which SIGTERM would cut."""
    assert services["haproxy"]["stop_signal"] == "SIGUSR1"
    last_s = int(re.search(r"hard-stop-after (\d+)s", CONFIG.read_text())[1])  # type: ignore[index]
    environment = services["evenkeel"]["environment"]
    drain_s = environment["EVENKEEL_SHUTDOWN_DELAY_S"] + environment["EVENKEEL_DRAIN_TIMEOUT_S"]
    assert last_s >= drain_s + _LAST_WORDS_S
    assert int(services["haproxy"]["stop_grace_period"].removesuffix("s")) > last_s


def test_the_proxy_may_as_little_as_the_service(services: dict[str, Any]) -> None:
    for rule in ("read_only", "cap_drop", "security_opt", "restart"):
        assert services["haproxy"][rule] == services["evenkeel"][rule]
    assert {"mem_limit", "pids_limit"} <= services["haproxy"].keys()
    # It holds as many connections as a replica, with two buffers each.
    numbers = dict(re.findall(r"^    (maxconn|tune\.bufsize) (\d+)$", CONFIG.read_text(), re.M))
    assert int(numbers["maxconn"]) >= Settings.model_fields["max_connections"].default
    buffers = 2 * int(numbers["maxconn"]) * int(numbers["tune.bufsize"])
    assert buffers < int(services["haproxy"]["mem_limit"].removesuffix("m")) << 20


def test_replicas_of_ray_have_no_settings_of_whoever_measures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As those behind HAProxy have none, beside which they are measured."""
    started: list[dict[str, str]] = []
    monkeypatch.setenv("EVENKEEL_SLOTS", "1")
    monkeypatch.setenv("NOT_OF_THE_SERVICE", "kept")
    monkeypatch.setattr(
        fleets.psutil, "Popen", lambda *_, env, **__: started.append(env), raising=True
    )
    fleets._ray(8000, 2, {"EVENKEEL_THREADS": "1"})
    (had,) = started
    assert "EVENKEEL_SLOTS" not in had
    assert (had["EVENKEEL_THREADS"], had["NOT_OF_THE_SERVICE"]) == ("1", "kept")
