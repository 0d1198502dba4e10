"""A service whose artifacts change while it serves, and questions to it."""

import asyncio
import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from service.catalogue import Models
from tests.service.altered import copy_of, edit_manifest
from tests.service.processes import ready, spawned
from tests.service.serving import eventually, listening, settings


class Asked:
    """A server on the loopback interface, whose clients there may administer it."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=30)

    def text(self, seed: int = 1, **body: Any) -> tuple[str, str]:
        """A completion of `letters` and the fingerprint of the model that wrote it."""
        asked = {"model": "letters", "prompt": "It ", "max_tokens": 40, "seed": seed} | body
        answer = self.client.post("/v1/completions", json=asked)
        assert answer.status_code == 200, answer.text
        return answer.json()["choices"][0]["text"], answer.json()["system_fingerprint"]

    def streamed(self, seed: int = 1, **body: Any) -> Iterator[tuple[str, str]]:
        """The same as a stream, an event at a time; it must end well."""
        asked = {"model": "letters", "prompt": "It ", "max_tokens": 40, "seed": seed} | body
        asked |= {"stream": True}
        with self.client.stream("POST", "/v1/completions", json=asked) as response:
            assert response.status_code == 200
            data = [""]
            for data in (line[6:] for line in response.iter_lines() if line.startswith("data: ")):
                if data != "[DONE]":
                    event = json.loads(data)
                    assert "error" not in event, event
                    yield event["choices"][0]["text"], event["system_fingerprint"]
            assert data == "[DONE]"

    def tell(self, what: str, name: str = "letters") -> httpx.Response:
        """The answer to `reload`, `load` or `unload`."""
        return self.client.post(f"/v1/models/{name}/{what}")

    def standing(self, name: str = "letters") -> dict[str, Any]:
        """The entry of `/health`."""
        return self.client.get("/health").json()["models"][name]

    def ready(self) -> tuple[int, str]:
        answer = self.client.get("/readyz")
        return answer.status_code, answer.text


class Changing(Asked):
    """One in this process."""

    def __init__(self, url: str, app: FastAPI) -> None:
        super().__init__(url)
        self.app = app
        self.models: Models = app.state.models

    def look(self, *, again: bool = False) -> None:
        """Have it look for changes, and wait until it has; `again` as after a hang-up."""
        looking = self.models.look(again=again)
        asyncio.run_coroutine_threadsafe(looking, self.app.state.watch._loop).result(20)

    def reloads(self, outcome: str, name: str = "letters") -> float:
        """How often a model was loaded with this outcome."""
        labels = {"model": name, "outcome": outcome}
        registry = self.app.state.metrics.registry
        return registry.get_sample_value("evenkeel_reloads_total", labels) or 0.0

    def metric(self, name: str, model: str = "letters") -> float | None:
        """A gauge of a model; None for a model it does not know."""
        registry = self.app.state.metrics.registry
        return registry.get_sample_value(f"evenkeel_{name}", {"model": model})


@contextmanager
def changing(folder: Path, **chosen: Any) -> Iterator[Changing]:
    """The service of the artifacts in a folder; it looks for changes only when told."""
    with listening(settings(folder, **{"watch_s": 0} | chosen)) as (url, app):
        service = Changing(url, app)
        with service.client:
            yield service


def replace_by(folder: Path, other: Path) -> None:
    """Let the artifact in a folder be another one, under the name it has."""
    aside = Path(tempfile.mkdtemp(dir=folder.parent.parent))
    copy = copy_of(other, aside)
    edit_manifest(copy, lambda manifest: manifest.update(name=folder.name))
    folder.rename(aside / "old")
    copy.rename(folder)


@contextmanager
def process(folder: Path) -> Iterator[tuple[Asked, "subprocess.Popen[str]"]]:
    """The service in a process of its own, which has to end well."""
    with spawned(folder, watch_s=0) as (running, url):
        assert eventually(lambda: ready(url))
        service = Asked(url)
        with service.client:
            yield service, running
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=30)
        assert running.returncode == 0
        assert "Traceback" not in out + err
