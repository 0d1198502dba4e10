"""A model of what administrators, the folder and hang-ups may make of a served model. Some ask at
the same time, some have gone before their answer, an engine ends: what comes of that is always of
one order, and all that the service tells of it agrees.
"""

import asyncio
import random
import shutil
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI

from service.app import create_app
from service.catalogue import Models
from service.errors import NotLoaded, UnknownModel
from service.http import admin, status
from service.models import ServedModel
from tests.service.altered import copy_of, edit_manifest, perturb
from tests.service.serving import settings

_STEPS = 24
_PATIENCE_S = 30.0
_GOOD = ("letters", "noise")  # what the folder may hold; of each of the others nothing can serve
_BAD = ("perturbed", "cut short", "without manifest")
_ASK = ("load", "reload", "unload", "look", "look", "hang-up")


@dataclass(frozen=True)
class _Standing:
    """How one folder stands: which of `_GOOD` it gave, if that is `alive`, and whether what it held
    when it was looked at last, number `seen`, is `refused`; loads that did well and that failed."""

    known: bool = True
    gave: str | None = "letters"
    alive: bool = True
    refused: bool = False
    unloaded: bool = False
    seen: int = 0
    well: int = 0
    failed: int = 0

    def after(self, ask: str, seen: int, held: str | None) -> tuple["_Standing", str]:
        """After the folder `held` this, and the answer."""
        there = held not in (None, "without manifest")
        if ask in ("load", "reload", "unload"):
            if not (self.known or (there and ask != "unload")):
                return self, "unknown"
            if ask == "unload":
                gone = replace(self, gave=None, alive=False, refused=False, unloaded=True)
                return gone, "done"
            now = replace(self, known=True, unloaded=False)
            now = now._read(seen if there else -1, held, again=ask == "reload")
            return now, "refused" if now.refused else "done"
        if held is None:
            return _Standing(False, None, False, seen=-1, well=self.well, failed=self.failed), ""
        if not (self.known or there):
            return self, ""
        problem = self.refused or (self.gave is not None and not self.alive)
        if (self.seen == seen and not (ask == "hang-up" and problem)) or self.unloaded:
            return replace(self, known=True), ""
        return replace(self, known=True)._read(seen, held, again=False), ""

    def _read(self, seen: int, held: str | None, *, again: bool) -> "_Standing":
        now = replace(self, seen=seen, refused=held not in _GOOD)
        if now.refused:
            return replace(now, failed=self.failed + 1)
        if held == self.gave and self.alive and not again:
            return now
        return replace(now, gave=held, alive=True, well=self.well + 1)

    @property
    def shown(self) -> tuple[object, ...]:
        """What can be seen of it."""
        if not self.known:
            return None, None, False, self.well, self.failed
        idle = "unloaded" if self.unloaded else "failed"
        state = "ready" if self.alive else idle
        return state, self.gave, self.refused or state == "failed", self.well, self.failed


class _Story:
    """A service, its folder, and how that may stand by what has been asked."""

    def __init__(self, seed: int, folder: Path, held: dict[str, Path]) -> None:
        self.random, self._folder, self._held = random.Random(seed), folder, held
        self.seen = 0
        self.holds: str | None = "letters"
        self.stands = {_Standing()}
        self.app: FastAPI = create_app(settings(folder, slots=2, watch_s=0, drain_timeout_s=0))
        self.models: Models = self.app.state.models
        self.began = [model.engine._thread for model in self.models]
        make = self.models._loader.make

        def noted(*given: Any) -> ServedModel:
            self.began.append((model := make(*given)).engine._thread)
            return model

        self.models._loader.make = noted  # type: ignore[method-assign]

    def put(self) -> None:
        """Something else is in the folder."""
        self.seen += 1
        self.holds = self.random.choice((*_GOOD, *_GOOD, *_BAD, None))
        shutil.rmtree(self._folder / "letters", ignore_errors=True)
        if self.holds is not None:
            shutil.copytree(self._held[self.holds], self._folder / "letters")

    def end(self) -> None:
        """The engine ends."""
        for model in self._served():
            model.engine.stop()
            self.stands = {replace(stand, alive=False) for stand in self.stands}

    async def ask(self) -> None:
        """Some change it at the same time; one may have gone before the end."""
        asks = self.random.choices(_ASK, k=self.random.choice((1, 1, 2, 3)))
        tasks = [asyncio.create_task(self._asked(ask)) for ask in asks]
        leaves = self.random.random() < 0.3
        if leaves:
            for _ in range(self.random.randrange(4)):
                await asyncio.sleep(0)
            tasks[0].cancel()
        await asyncio.wait(tasks)
        async with self.models._changing:  # whatever has begun is over
            pass
        told = ["gone" if task.cancelled() else task.result() for task in tasks]
        self.stands = {
            stand
            for before in self.stands
            for order in permutations(range(len(asks)))
            for stand in self._ends(before, [(asks[i], told[i]) for i in order])
            if stand.shown == self.shown
        }
        assert self.stands, (asks, told, self.holds, self.shown)

    def _ends(self, stand: _Standing, rest: list[tuple[str, str]]) -> Iterator[_Standing]:
        """How it may stand in the end if they came in this order, and were told that."""
        if not rest:
            yield stand
            return
        (ask, told), *others = rest
        now, answer = stand.after(ask, self.seen, self.holds)
        if told in (answer, "gone"):
            yield from self._ends(now, others)
        if told == "gone":  # before it had its turn
            yield from self._ends(stand, others)

    async def _asked(self, ask: str) -> str:
        request: Any = SimpleNamespace(app=self.app)
        try:
            if ask in ("look", "hang-up"):
                await asyncio.shield(self.models.look(again=ask == "hang-up"))  # as by the watch
                return ""
            await getattr(admin, ask)(request, "letters")
        except UnknownModel:
            return "unknown"
        except NotLoaded:
            return "refused"
        return "done"

    def _served(self) -> list[ServedModel]:
        return [model for model in self.models if model.name == "letters"]

    @property
    def shown(self) -> tuple[object, ...]:
        """The folder's state, what it gave, whether it tells a failure, and loads by outcome."""
        entry = self._told().get("letters")
        loads = [self._count("reloads_total", outcome=how) or 0 for how in ("ok", "failed")]
        gave = [m.artifact.manifest.provenance["held"] for m in self._served()]
        if entry is None:
            return None, None, False, *loads
        return entry["state"], *(gave or [None]), entry["failed"] is not None, *loads

    def _count(self, name: str, **labels: str) -> float | None:
        registry = self.app.state.metrics.registry
        return registry.get_sample_value(f"evenkeel_{name}", {"model": "letters"} | labels)

    def _told(self) -> dict[str, Any]:
        return {name: place.health() for name, place in self.models.places.named.items()}

    def agrees(self) -> None:
        """Health, readiness, metrics and the list of models tell the same, at one look."""
        request: Any = SimpleNamespace(app=self.app)
        health, ready = (_now(tell(request)) for tell in (status.health, status.readyz))
        cards = {card["id"]: card for card in _now(status.list_models(request))["data"]}
        assert health.status_code == ready.status_code == 200  # by the model beside it
        entries = self._told()
        failed = [name for name, entry in entries.items() if entry["state"] == "failed"]
        assert ready.body.decode() == "; failed: ".join(["ok", *failed])
        entry = entries.get("letters")
        assert self._count("model_ready") == (entry and entry["ready"])
        assert self._count("model_failed") == (entry and entry["failed"] is not None)
        assert (entry is not None and entry["ready"]) == cards.get("letters", {}).get(
            "ready", False
        )


def _now(told: Coroutine[Any, Any, Any]) -> Any:
    """What it returns without a wait."""
    with pytest.raises(StopIteration) as returned:
        told.send(None)
    return returned.value.value


def _tell(held: str, manifest: dict[str, Any]) -> None:
    manifest["provenance"]["held"] = held


@pytest.fixture(scope="module")
def held(artifacts: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What a folder may hold, by its name, all of them a model `letters`."""
    root, found = tmp_path_factory.mktemp("held"), {}
    for name in (*_GOOD, *_BAD):
        (root / name).mkdir()
        source = artifacts / (name if name in _GOOD else "letters")
        found[name] = copy_of(source, root / name)
        edit_manifest(found[name], lambda manifest: manifest.update(name="letters"))
        edit_manifest(found[name], partial(_tell, name))
    perturb(found["perturbed"], "stack.cells.0.weight_h", (0, 0), 1e-3)
    (found["cut short"] / "step.onnx").unlink()
    (found["without manifest"] / "manifest.json").unlink()
    return found


@pytest.mark.parametrize("seed", range(3))
def test_what_is_asked_at_the_same_time_is_of_one_order_and_all_that_is_told_agrees(
    artifacts: Path, tmp_path: Path, held: dict[str, Path], seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("service.leaving._LAST_WORDS_S", 0.0)
    copy_of(artifacts / "noise", tmp_path)
    shutil.copytree(held["letters"], tmp_path / "letters")

    async def change() -> None:
        story = _Story(seed, tmp_path, held)
        async with story.app.router.lifespan_context(story.app):
            for model in story.models:
                await asyncio.to_thread(model.engine.attested.wait, _PATIENCE_S)
            acts: list[Callable[[], Any]] = [story.put, story.ask, story.ask, story.end]
            for act in story.random.choices(acts, (4, 5, 5, 1), k=_STEPS):
                if (wait := act()) is not None:
                    await wait
                story.agrees()
            if leaving := story.models._leaving._tasks:
                await asyncio.wait(leaving, timeout=_PATIENCE_S)
            serving = [model.engine._thread for model in story.models if model.engine.ready]
            assert {t for t in threading.enumerate() if t in story.began} == set(serving)

    asyncio.run(change())
