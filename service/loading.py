"""From an artifact folder to a model that serves: runner, state codec, engine, attestation."""

import logging
import secrets
import threading
import weakref
from collections.abc import Mapping
from dataclasses import replace

from service.artifact import Artifact, ArtifactError, NotGiven
from service.engine.core_budget import CoreBudget
from service.engine.engine import Engine
from service.engine.limits import Limits
from service.engine.pace import Pace, measure_pace
from service.engine.runners import Runner, given_up
from service.engine.runtime import Runtime, choose_runtime
from service.engine.sharing import sharing
from service.engine.threads import fastest_runners, usable_cores
from service.errors import NotReady
from service.kind import ServiceKind
from service.metrics import Metrics
from service.models import ServedModel
from service.settings import Settings
from service.state import StateCodec

log = logging.getLogger(__name__)

# Times as long as one run may take: a proof is of several, when a service starts beside those of
# all its other models, on however few cores.
_PROOF = 10
_STOPPING = "the service is stopping"


class Loader:
    """Makes models, all for the same hardware and with the same keys for their state tokens."""

    def __init__(
        self, settings: Settings, metrics: Metrics, kinds: Mapping[str, ServiceKind]
    ) -> None:
        key = settings.state_key.get_secret_value() if settings.state_key else secrets.token_hex()
        if settings.state_key is None:
            log.info("EVENKEEL_STATE_KEY is not set: state tokens last until the service stops")
        self._key = key.encode()
        others = settings.state_key_fallbacks
        self._fallbacks = [other.get_secret_value().encode() for other in others]
        self._settings = settings
        self._metrics = metrics
        self._kinds = kinds
        self._budget = CoreBudget(usable_cores())
        self._runtime = _within(choose_runtime(settings), self._budget.cores)
        self._proving: Engine | None = None
        self._stopped = False
        self._proof_s = _PROOF * settings.stall_timeout_s

    def make(self, artifact: Artifact, like: Runtime | None = None) -> ServedModel:
        """A model that has not started yet, which creates its sessions. `like` is the runtime of
        the one it will stand in for: what serves meanwhile would spoil another measurement.

        Raises `ArtifactError`.
        """
        made, chosen = self._made(artifact, like or self._runtime)
        share = self._budget.share(max(chosen.threads, chosen.other_threads))
        kind = self._kinds[artifact.manifest.kind]
        codec = StateCodec(
            self._key,
            artifact,
            chosen.fingerprint,
            kind.edge,
            self._fallbacks,
            self._metrics.of_fallbacks.labels(artifact.name).inc,
        )
        allowed = self._settings.allow_unproved
        model = kind.model(artifact, chosen, codec, allow_unproved=allowed)
        # The engine's thread must not keep a model that nobody holds any more.
        held = weakref.ref(model)

        def another(made: Mapping[int, Runner] | None = None) -> Runner:
            model = held()  # which may have another folder by now, of the same content
            return sharing(artifact if model is None else model.artifact, chosen, share, made)

        def attested(runner: Runner) -> bool:
            model = held()
            with given_up(runner, self._proof_s):
                return model is not None and model.attest(runner)

        def measured(runner: Runner) -> Pace:
            with given_up(runner, self._proof_s):
                return measure_pace(artifact, runner)

        def problem() -> str | None:
            model = held()
            return None if model is None else model.problem

        model.engine = Engine(
            another(made),
            self._metrics.of_engine(artifact.name),
            limits=Limits.of(self._settings),
            attest=attested,
            measure=measured,
            problem=problem,
            name=artifact.name,
            another=another,
            share=share,
        )
        return model

    def begin(self, model: ServedModel) -> None:
        """Start its engine, which attests it. Raises `NotGiven` where the system has no thread for
        that, as beyond the limit of a container."""
        try:
            model.engine.start()
        except RuntimeError as error:
            raise NotGiven(f"{model.artifact.folder}: {error}") from error

    def prove(self, model: ServedModel) -> None:
        """Start its engine and wait until it has attested the model, of one at a time. Raises
        `ArtifactError`, and `NotReady` where the service ends first."""
        limit_s = self._settings.stall_timeout_s
        self._proving = model.engine
        try:
            if self._stopped:  # as the model was read
                raise NotReady(_STOPPING)
            self.begin(model)
            ended = model.engine.attested.wait(min(limit_s, threading.TIMEOUT_MAX))
        finally:
            self._proving = None
        if self._stopped or not model.engine.ready:
            model.engine.stop()
            if self._stopped:  # which says nothing about the artifact
                raise NotReady(_STOPPING)
            why = model.problem if ended else f"its attestation took longer than {limit_s:g} s"
            raise ArtifactError(f"{model.artifact.folder}: {why}")

    def stop(self) -> None:
        """Have whoever waits for an attestation wait no longer: it might be stuck, and the process
        ends only once all its threads have."""
        self._stopped = True
        if (engine := self._proving) is not None:
            engine.tell_to_stop()
            engine.attested.set()

    def _made(self, artifact: Artifact, runtime: Runtime) -> tuple[Mapping[int, Runner], Runtime]:
        """Runners that choosing the number of threads has made, by those, and the runtime."""
        if runtime.provider == "cpu" and runtime.threads == 0:
            return fastest_runners(artifact, runtime, limit_s=self._proof_s)
        return {}, runtime


def _within(runtime: Runtime, cores: int) -> Runtime:
    """With no more threads than there are cores. More would keep each other from them, and be told
    to make do with half of the cores even where no other model is at work."""
    if runtime.threads <= cores:
        return runtime
    log.warning("EVENKEEL_THREADS is %d, but there are %d cores", runtime.threads, cores)
    return replace(runtime, threads=cores)
