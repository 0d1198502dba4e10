"""Faults, one scenario after the other: clients that resume have to notice none of them.

Two replicas behind a load balancer; six clients of `clients/` stream text and ink through it, again
and again, while something is done to the replicas. Every answer is compared with what was streamed
before that.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bench.goal import judge
from bench.peers.launch import launch, unproxied
from bench.target import ARTIFACTS, MODEL, SERVICE, Server, Target
from tests.reliability.held import metrics, series
from tests.reliability.proxy import Proxy, balancing
from tests.reliability.reader import Reader
from tests.reliability.record import Found
from tests.reliability.work import INK, TEXT

_SETTINGS = {
    "EVENKEEL_STATE_KEY": "a key that both replicas share",
    "EVENKEEL_SHUTDOWN_DELAY_S": "0.5",
    "EVENKEEL_DRAIN_TIMEOUT_S": "1",
    "EVENKEEL_WATCH_S": "0.5",
}
_FAULTY = Server(("tests.reliability.faulty",))
_STOPPED_S = 5.0
_LATE_S = 60.0


@dataclass(frozen=True, slots=True)
class ChaosRow:
    """`streams` ended while it went on, which took so many `requests`; `lost` is why any did not
    end well, `wrong` counts those that differ from the answer before."""

    scenario: str
    what: str
    seconds: float
    streams: int
    requests: int
    characters_and_points: int
    lost: list[str]
    wrong: int
    also: str


@dataclass
class Stage:
    """The replicas and what stands before them. A fault lets `pause_s` pass before the next."""

    proxy: Proxy
    stack: ExitStack
    artifacts: Path
    pause_s: float
    server: Server | None = None
    log: IO[str] | None = None
    replicas: list[Target] = field(default_factory=list)

    def start(self) -> None:
        """One more replica."""
        output = subprocess.DEVNULL if self.log is None else self.log
        replica = launch(
            SERVICE, artifacts=self.artifacts, settings=_SETTINGS, server=self.server,
            output=output, errors=self.log,
        )  # fmt: skip
        self.replicas.append(self.stack.enter_context(replica))
        self._tell_proxy()

    def end(self, target: Target, sig: signal.Signals) -> int:
        """End a replica with a signal; its exit status."""
        os.kill(target.pid, sig)
        # Whoever started it has to find it as well.
        ended = os.waitid(os.P_PID, target.pid, os.WEXITED | os.WNOWAIT)
        self.replicas.remove(target)
        self._tell_proxy()
        return ended.si_status if ended else -1

    def each(self, *signals: signal.Signals, between_s: float = 0.0) -> None:
        """Send every replica these signals."""
        for target in self.replicas:
            for sig in signals:
                os.kill(target.pid, sig)
                time.sleep(between_s)
            time.sleep(self.pause_s)

    def count(self, name: str) -> int:
        """The sum of a series over all replicas."""
        return int(sum(series(metrics(target), name) for target in self.replicas))

    def well(self) -> str:
        """What the replicas say of themselves."""
        return ", ".join(
            unproxied.open(target.url(path), timeout=10).read().decode()
            for path in ("/livez", "/readyz")
            for target in self.replicas
        )

    def _tell_proxy(self) -> None:
        self.proxy.ports = [target.port for target in self.replicas]


def kill(stage: Stage) -> str:
    """`kill -9` of one replica after the other; each is replaced."""
    for target in list(stage.replicas):
        time.sleep(stage.pause_s)
        stage.end(target, signal.SIGKILL)
        stage.start()
    return stage.well()


def stop(stage: Stage) -> str:
    """SIGSTOP for five seconds, then SIGCONT."""
    stage.each(signal.SIGSTOP, signal.SIGCONT, between_s=_STOPPED_S)
    return stage.well()


def roll(stage: Stage) -> str:
    """A rolling restart: a new replica starts, an old one gets SIGTERM and a second to drain."""
    statuses = []
    for target in list(stage.replicas):
        stage.start()
        time.sleep(stage.pause_s)
        statuses.append(stage.end(target, signal.SIGTERM))
    return f"exit {statuses}; {stage.well()}"


def fail(stage: Stage) -> str:
    """A run of a model raises, three times on each replica, with runs that do not in between."""
    wanted, end_s = 3 * len(stage.replicas), time.monotonic() + _LATE_S
    for _ in range(3):
        stage.each(signal.SIGUSR1)
    while (faults := stage.count("engine_faults_total")) < wanted and time.monotonic() < end_s:
        time.sleep(0.1)
    return f"{faults} faults; {stage.well()}"


def set_clock_back(stage: Stage) -> str:
    """The clock goes back by an hour."""
    stage.each(signal.SIGUSR2)
    return stage.well()


def fill_disk(stage: Stage) -> str:
    """Logs go where there is no room, and the copy of a newer model breaks off half way."""
    graph = stage.artifacts / MODEL / "model.onnx"
    content = graph.read_bytes()
    graph.write_bytes(content[: len(content) // 2])
    time.sleep(2 + stage.pause_s)
    return f"{stage.count('model_failed')} not loaded; {stage.well()}"


SCENARIOS: dict[str, Callable[[Stage], str]] = {
    "kill": kill,
    "stop": stop,
    "roll": roll,
    "fail": fail,
    "clock": set_clock_back,
    "disk": fill_disk,
}
_BY_SIGNAL = {fail, set_clock_back}


def measure(names: Sequence[str], pause_s: float, length: int) -> Iterator[Found]:
    """These scenarios, with answers of so many bytes or points, and what was lost."""
    rows = []
    for name in names:
        rows.append(play(name, pause_s, length))
        yield "chaos", rows[-1]
    for row in rows:
        yield judge(f"{row.scenario}: streams lost", "none", "at most", 0, len(row.lost))
        yield judge(f"{row.scenario}: streams that differ", "none", "at most", 0, row.wrong)


def play(name: str, pause_s: float, length: int, clients: int = 6) -> ChaosRow:
    """One scenario, with so many clients."""
    action = SCENARIOS[name]
    with _stage(action, pause_s) as stage, ExitStack() as stack:
        url = f"http://127.0.0.1:{stage.proxy.port}"
        readers = [stack.enter_context(Reader(url, seed, length)) for seed in range(clients)]
        for reader in readers:
            reader.learn()
        began_s = time.monotonic()
        told = action(stage)
        for reader in readers:
            reader.end()
        return ChaosRow(
            scenario=name,
            what=str(action.__doc__),
            seconds=round(time.monotonic() - began_s, 1),
            streams=sum(reader.streams for reader in readers),
            requests=sum(reader.requests for reader in readers),
            characters_and_points=sum(reader.streams * len(reader.expected) for reader in readers),
            lost=[why for reader in readers for why in reader.lost],
            wrong=sum(reader.wrong for reader in readers),
            also=told,
        )


@contextmanager
def _stage(action: Callable[[Stage], str], pause_s: float) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory() as folder, balancing() as proxy, ExitStack() as stack:
        artifacts = Path(folder)
        for work in (TEXT, INK):  # no other model is asked
            shutil.copytree(ARTIFACTS / work.model, artifacts / work.model)
        stage = Stage(proxy, stack, artifacts, pause_s)
        stage.server = _FAULTY if action in _BY_SIGNAL else None
        if action is fill_disk:
            stage.log = stack.enter_context(open("/dev/full", "w", encoding="utf-8"))
        for _ in range(2):
            stage.start()
        yield stage
