"""The dashboard without Grafana: Prometheus watches a service under load, and is asked the
questions of every panel as Grafana would ask them.

Wants the program `prometheus`, which Debian has under that name.
"""

import json
import math
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

import httpx
import uvloop
import yaml

from bench.goal import judge
from bench.peers.launch import end, free_port, ready
from bench.target import Target
from tests.reliability.load import capacity_per_s, offer
from tests.reliability.plots import Panel, Series
from tests.reliability.record import Found
from tests.reliability.work import INK, TEXT, Reply, Work, ask, connect

_OBSERVE = Path("deploy", "observe")
_BOARD = _OBSERVE / "grafana" / "dashboards" / "evenkeel.json"
_RIGHT = {"id": "custom.axisPlacement", "value": "right"}  # of the lines of one question
# Of what both get together: half of it, all, more than there is, and half again.
_SHARES = (0.5, 1.0, 2.0, 0.5)
_LEAVES = 20  # one client in so many
_CAPACITY_S, _PATIENCE_S = 6.0, 30.0
_STEP_S = 5
# Nothing goes wrong here that would have samples of its own.
_QUIET = {"Failed runs"}


def measure(service: Target, seconds: float) -> Iterator[Found]:
    """A load of text beside ink, for so long in all, and what Prometheus says then."""
    with tempfile.TemporaryDirectory() as folder, _prometheus(service, Path(folder)) as url:
        began_s = time.time()
        uvloop.run(_load(service.url(""), seconds))
        time.sleep(2 * _STEP_S)
        panels = _ask(url, began_s, time.time())
    for panel in panels:
        yield "samples", panel
        values = [value for series in panel.series for _, value in series.points]
        largest = max(values, default=None)
        yield "panels", {"title": panel.title, "series": len(panel.series), "largest": largest}
    empty = [p.title for p in panels if not any(s.points for s in p.series)]
    missing = len(set(empty) - _QUIET)
    yield judge("panels that show nothing", "none", "at most", 0, missing)


@contextmanager
def _prometheus(service: Target, folder: Path) -> Iterator[str]:
    """One that scrapes the service as the profile `observe` has it."""
    program = which("prometheus")
    if program is None:
        raise SystemExit("there is no prometheus here: apt-get install prometheus")
    settings = yaml.safe_load((_OBSERVE / "prometheus.yml").read_text())
    (found,) = settings["scrape_configs"][0]["dns_sd_configs"]
    found |= {"names": ["localhost"], "port": service.port}
    settings["rule_files"] = [str(_OBSERVE.resolve() / name) for name in settings["rule_files"]]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    url = f"http://127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [
            program, f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={url.removeprefix('http://')}", "--log.level=error",
        ]
    )  # fmt: skip
    try:
        limit_s = time.monotonic() + _PATIENCE_S
        while not ready(f"{url}/-/ready"):
            if process.poll() is not None or time.monotonic() > limit_s:
                raise SystemExit("prometheus did not start")
            time.sleep(0.1)
        yield url
    finally:
        end(process)


async def _load(url: str, seconds: float) -> None:
    """Some of it more than the service can do, some of the clients in a hurry."""
    capacity = await capacity_per_s(url, (TEXT, INK), _CAPACITY_S)
    async with connect() as session:

        async def one(work: Work, due_s: float, number: int) -> Reply:
            leaves = number % _LEAVES == 0
            return await ask(session, url, work, number, intended_s=due_s, leaves=leaves)

        for seed, share in enumerate(_SHARES):
            rates = {work: share * each for work, each in capacity.items()}
            await offer(rates, seconds / len(_SHARES), seed, one)


def _ask(url: str, began_s: float, ended_s: float) -> list[Panel]:
    board: dict[str, Any] = json.loads(_BOARD.read_text())
    ask_range = partial(_series, url, began_s, ended_s)
    panels = []
    for panel in board["panels"]:
        place = panel["gridPos"]
        lines = {target["refId"]: list(ask_range(target)) for target in panel["targets"]}
        changes = panel["fieldConfig"]["overrides"]
        right = [each["matcher"]["options"] for each in changes if _RIGHT in each["properties"]]
        panels.append(
            Panel(
                panel["title"], panel["type"], panel["fieldConfig"]["defaults"].get("unit", ""),
                (place["x"], place["y"], place["w"], place["h"]),
                [line for each in lines.values() for line in each],
                [line.name for asked in right for line in lines[asked]],
            )
        )  # fmt: skip
    return panels


def _series(url: str, began_s: float, ended_s: float, target: dict[str, str]) -> Iterator[Series]:
    """The answer to one question, its lines named as Grafana names them."""
    told = yaml.safe_load((_OBSERVE / "prometheus.yml").read_text())["global"]
    interval = f"{4 * int(told['scrape_interval'].removesuffix('s'))}s"  # as Grafana has it
    question = target["expr"].replace("$__rate_interval", interval).replace("$model", ".+")
    asked = {"query": question, "start": began_s, "end": ended_s, "step": _STEP_S}
    answer = httpx.get(f"{url}/api/v1/query_range", params=asked, trust_env=False)
    answer.raise_for_status()
    for found in answer.json()["data"]["result"]:
        name = re.sub(r"{{(\w+)}}", partial(_label, found["metric"]), target["legendFormat"])
        read = [(round(at - began_s, 1), float(value)) for at, value in found["values"]]
        yield Series(name, tuple((at, value) for at, value in read if not math.isnan(value)))


def _label(labels: dict[str, str], named: re.Match[str]) -> str:
    return labels.get(named[1], "")
