"""The models of the service: a set that changes while it serves.

Every folder of the artifacts folder has a place here, whether it gave a model or not. A model is
swapped for what its folder holds now once that has proved itself; what the old one was asked for
it still does. One thing changes at a time, and on the event loop alone.
"""

import asyncio
import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from contract.files import printable
from service.artifact import ArtifactError, NotGiven, artifact_folders, load_artifact
from service.engine.engine import Engine
from service.errors import InvalidRequest, NotLoaded, NotReady, ServiceError, UnknownModel, shown
from service.kind import ServiceKind
from service.leaving import Leaving
from service.loading import Loader
from service.metrics import Metrics
from service.models import ServedModel
from service.places import Look, Place, Places, is_there, look_at
from service.precision import choose, compare, pairs, speedup_of
from service.settings import Settings

log = logging.getLogger(__name__)

_LOOK_S = 0.05  # between two looks at whether all models have been attested
S = TypeVar("S", bound=ServedModel)


class Models:
    """All models by name. Reading them creates their sessions; `start` lets them prove themselves.

    Raises `ArtifactError` if there is none to serve, or one that is required is not among them.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, kinds: Mapping[str, ServiceKind]
    ) -> None:
        self.places = Places()
        self.stopping = False
        # Called where models have come to stay or have gone: at the start, and after a change.
        self.on_settled: Callable[[], None] = lambda: None
        # Called with the engine of a model that has gone, before it is stopped.
        self.on_leaving: Callable[[Engine], None] = lambda engine: None
        self._settings = settings
        self._metrics = metrics
        self._loader = Loader(settings, metrics, kinds)
        self._leaving = Leaving(
            settings.drain_timeout_s,
            on_leaving=lambda engine: self.on_leaving(engine),
            on_gone=lambda: self.on_settled(),
        )
        self._changing = asyncio.Lock()
        for folder in artifact_folders(settings.artifacts):
            place = self.places.of(folder)
            place.seen = look_at(folder)
            try:
                place.model = self._read(place)
                place.name = place.model.name
            except Exception as error:
                self._refuse(place, error)
        self._require_some()

    def _require_some(self) -> None:
        served = {model.name for model in self}
        reasons = [place.refused for place in self.places if place.refused]
        if not served:
            raise ArtifactError("; ".join(reasons))
        for name in self._settings.require:
            if name not in served:
                why = "; ".join(reasons) or f"there are: {', '.join(sorted(served))}"
                raise ArtifactError(f"EVENKEEL_REQUIRE has {name!r}, which cannot be served: {why}")

    def start(self) -> None:
        """Start every engine that has not been; each attests its model first. Raises `NotGiven`."""
        for model in self:
            self._loader.begin(model)

    def stop(self) -> None:
        """Stop every engine. One that is stuck keeps none of the others from their last words."""
        for engine in self.tell_to_stop():
            engine.stop()

    def tell_to_stop(self) -> list[Engine]:
        """Every engine, those that are about to begin or to end as well, told to stop; each has yet
        to be waited for, by its `stop`. For the event loop alone, where none comes or goes
        meanwhile."""
        engines = self._engines()
        self._loader.stop()
        for engine in engines:
            engine.tell_to_stop()
        return engines

    @property
    def ready(self) -> bool:
        """Whether something serves, all that is required does, nothing has yet to prove itself
        for the first time, and the service means to stay."""
        serving = {place.name for place in self.places if place.state == "ready"}
        starting = any(not model.engine.attested.is_set() for model in self)
        enough = bool(serving) and serving.issuperset(self._settings.require)
        return enough and not starting and not self.stopping

    @property
    def stalled_s(self) -> dict[str, float]:
        """For how long engines have been at their present chunk, by the names of their models; of a
        model and one that it replaced the longer."""
        longest: dict[str, float] = {}
        for engine in self._engines():
            longest[engine.name] = max(engine.stalled_s, longest.get(engine.name, 0.0))
        return longest

    def stuck(self, limit_s: float) -> list[str]:
        """The names of models that are at one chunk for longer, replaced ones included."""
        return [name for name, stalled_s in self.stalled_s.items() if stalled_s > limit_s]

    def __iter__(self) -> Iterator[ServedModel]:
        return iter([place.model for place in self.places if place.model is not None])

    def __getitem__(self, name: str) -> ServedModel:
        """Raises `UnknownModel`."""
        for model in self:
            if model.name == name:
                return model
        known = ", ".join(model.name for model in self) or "none"
        raise UnknownModel(f"model is {shown(name)}; this service has: {known}", "model")

    def of(self, kind: type[S]) -> list[S]:
        """The models of a class."""
        return [model for model in self if isinstance(model, kind)]

    def default(self, kind: type[S]) -> S | None:
        """The model of a class that answers requests which name none: in the precision that the
        settings want, if it is served in two. None where one has to be named, or there is none."""
        return choose(self.of(kind), self._settings.precision)

    def pick(self, name: str | None, kind: type[S]) -> S:
        """The model of that name and class, or the default of it if no name is given.

        Raises `UnknownModel`, and `InvalidRequest` for a model of another kind.
        """
        if name is None:
            default = self.default(kind)
            if default is None:
                names = ", ".join(model.name for model in self.of(kind)) or "none"
                raise UnknownModel(f"model is missing; those that can do this: {names}", "model")
            return default
        model = self[name]
        if not isinstance(model, kind):
            what = model.artifact.manifest.kind
            raise InvalidRequest(f"model {name!r} is of kind {what}, which cannot do this", "model")
        return model

    def describe(self, model: ServedModel) -> dict[str, Any]:
        """The entry of `/v1/models`."""
        alike = self.of(type(model))
        alone, crowded = speedup_of(model, alike) or (None, None)
        return model.describe() | {
            "speedup": alone,
            "speedup_crowded": crowded,
            "default": model is choose(alike, self._settings.precision),
        }

    async def compare(self) -> None:
        """Once all models have been attested, measure those of eight bits beside their exact ones.

        Until then the machine has other work, and would be measured with it.
        """
        while not all(model.engine.attested.is_set() for model in self):
            await asyncio.sleep(_LOOK_S)
        self.on_settled()
        async with self._changing:
            await self._compare()

    async def _compare(self) -> None:
        limit_s = self._settings.stall_timeout_s
        for exact, eight in pairs(list(self)):
            if exact not in eight.speedups and exact.engine.ready and eight.engine.ready:
                try:
                    # A run that is stuck ends by a change of its model alone, which waits for this.
                    async with asyncio.timeout(limit_s):
                        await compare(exact, eight)
                except (ServiceError, TimeoutError) as error:
                    why = str(error) or f"it took longer than {limit_s:g} s"
                    log.warning("%s was not measured beside %s: %s", eight.name, exact.name, why)

    async def look(self, *, again: bool = False) -> None:
        """Load what is new or has changed, unload what has gone; `again` also tries once more what
        failed.

        An artifacts folder that is empty or away unloads nothing: it may not be mounted.
        """
        async with self._changing:
            found = await asyncio.to_thread(self._look_around)
            for place in self.places if found else ():
                if place.folder not in found and is_there(place.folder):
                    # It has lost its manifest, or may not be read: to be told, as any change.
                    found[place.folder] = look_at(place.folder)
                elif place.folder not in found:
                    log.info("%s: its folder has gone", place.name)
                    self._retire(place)
                    self.places.remove(place)
            for folder, seen in found.items():
                place = self.places.of(folder)
                changed = seen != place.seen or (again and place.problem is not None)
                if (
                    (changed or self.places.rival_gone(place))
                    and not place.unloaded
                    and not self.stopping
                ):
                    with suppress(NotReady):  # nobody waits for it
                        await self._swap(place, seen)

    async def load(self, name: str, *, again: bool) -> ServedModel:
        """The model of that name, read from its folder; `again` even if nothing has changed.

        Raises `UnknownModel`, `NotLoaded` if what is in the folder cannot be served, and `NotReady`
        where the service ends first.
        """
        async with self._changing:
            found = await asyncio.to_thread(self._look_around)
            place = self.places.find(name, found)
            place.unloaded = None
            seen = found.get(place.folder, frozenset())
            await self._swap(place, seen, again=again, asked=True)
            if place.model is None or place.refused:
                raise NotLoaded(f"{name} cannot be served as it is now: {place.refused}")
            return place.model

    async def unload(self, name: str) -> None:
        """Serve a model no more until it is loaded by its name. Raises `UnknownModel`."""
        async with self._changing:
            place = self.places.find(name)
            if place.unloaded is None:
                log.info("%s: unloaded", place.name)
            place.unloaded, place.refused = name, None
            self._retire(place)

    def _engines(self) -> list[Engine]:
        return [*(model.engine for model in self), *self._leaving.engines]

    def _look_around(self) -> dict[Path, Look]:
        """What every folder with an artifact looks like."""
        try:
            return {
                folder: look_at(folder) for folder in artifact_folders(self._settings.artifacts)
            }
        except ArtifactError:
            return {}

    async def _swap(
        self, place: Place, seen: Look, *, again: bool = False, asked: bool = False
    ) -> None:
        """Let what is in a folder take the place of the model it gave before, if it can serve."""
        place.seen, place.rivalled = seen, None
        try:
            model = await asyncio.to_thread(self._read, place, again=again, asked=asked)
            if model is not place.model:
                await asyncio.to_thread(self._loader.prove, model)
        except NotReady:  # the service ends, whatever is in the folder
            raise
        except Exception as error:
            if (other := self.places.exchange(place)) is not None:
                await self._swap(place, seen, again=again, asked=asked)
                return await self._swap(other, other.seen)
            self._refuse(place, error)
            self._metrics.reloads.labels(place.name, "failed").inc()
            return
        place.refused = None
        if model is not place.model:
            self._retire(place)
            place.model, place.name = model, model.name
            self.on_settled()
            self._metrics.reloads.labels(place.name, "ok").inc()
            log.info("%s: serves %s", place.name, model.fingerprint)
            await self._compare()

    def _read(self, place: Place, *, again: bool = False, asked: bool = False) -> ServedModel:
        """The model of a folder: the one it gave before if that serves and nothing has changed."""
        artifact, old = load_artifact(place.folder), place.model
        if old is None:
            self.places.claim(artifact.name, place, asked=asked)
            return self._loader.make(artifact)
        same = (artifact.digest, artifact.manifest) == (old.artifact.digest, old.artifact.manifest)
        if same and old.engine.ready and not again:
            old.artifact = artifact  # where its files are from now on
            return old
        # It has its own name already, even beside a folder of which that was unloaded.
        self.places.claim(artifact.name, place, asked=artifact.name == old.name)
        return self._loader.make(artifact, old.runtime)

    def _refuse(self, place: Place, error: Exception) -> None:
        """Keep why, and log it if it is news. What may pass is tried again at the next look."""
        if isinstance(error, NotGiven | MemoryError):
            place.seen = frozenset()
        told = isinstance(error, ArtifactError)
        why = printable(str(error) if told else f"{place.folder}: {type(error).__name__}: {error}")
        if why != place.refused:
            log.error("%s", why, exc_info=None if told else error)
        place.refused = why

    def _retire(self, place: Place) -> None:
        """Give out its model no more; whoever holds it may go on with it for a while."""
        if place.model is None:
            return
        engine, held = place.model.engine, weakref.ref(place.model)
        place.model = None
        self._leaving.add(engine, held)
