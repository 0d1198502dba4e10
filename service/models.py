"""The models being served: each an artifact, an engine, a codec for its state, and a verdict."""

import logging
import secrets
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from contract.golden import Verdict
from service.artifact import Artifact, load_artifacts
from service.attestation import attest, attest_in_queue
from service.engine.engine import Engine
from service.engine.runtime import Runner, Runtime, choose_runtime, make_runner
from service.engine.threads import fastest_runner
from service.errors import InvalidRequest, UnknownModel
from service.metrics import Metrics
from service.settings import Settings
from service.state import StateCodec

if TYPE_CHECKING:
    from service.kind import ServiceKind

log = logging.getLogger(__name__)


class ServedModel:
    """One model; its engine's thread fills in the verdict. A kind may hold more of each of its own.

    `doubt` is why the artifact is no proof of anything, if it is not: such a model is not ready,
    unless the settings allow it.
    """

    engine: Engine

    def __init__(
        self, artifact: Artifact, runtime: Runtime, codec: StateCodec[Any], *, allow_unproved: bool
    ) -> None:
        self.artifact = artifact
        self.runtime = runtime
        self.codec = codec
        self.verdict: Verdict | None = None
        self.doubt = artifact.manifest.doubt
        self._allow_unproved = allow_unproved

    @property
    def name(self) -> str:
        return self.artifact.name

    @property
    def fingerprint(self) -> str:
        """Names the artifact's content and the runtime: `system_fingerprint` of completions."""
        return f"{self.artifact.digest[:16]}-{self.runtime.fingerprint}"

    def attest(self, runner: Runner) -> bool:
        """Replay the golden vectors and keep the verdict; whether the model may serve."""
        if self.doubt is not None:
            log.warning("%s: not proved: %s", self.name, self.doubt)
        self._keep(attest(self.artifact, runner))
        return self._may_serve()

    async def attest_now(self) -> Verdict:
        """Replay the golden vectors in the queue, beside whatever else is being served.

        A model that no longer agrees stops being ready. Raises what `submit` raises.
        """
        verdict = await attest_in_queue(self.artifact, self.engine)
        self._keep(verdict)
        self.engine.ready = self.engine.ready and self._may_serve()
        return verdict

    def _may_serve(self) -> bool:
        agrees = self.verdict is not None and self.verdict.ok
        return agrees and (self.doubt is None or self._allow_unproved)

    def _keep(self, verdict: Verdict) -> None:
        self.verdict = verdict
        log.log(
            logging.INFO if verdict.ok else logging.ERROR,
            "%s: attestation %s, max error %.2g (bound %.2g): %s",
            self.name,
            "ok" if verdict.ok else "FAILED",
            verdict.max_error,
            verdict.bound,
            verdict.detail,
        )

    def health(self) -> dict[str, Any]:
        """The entry of `/health`."""
        return {
            "ready": self.engine.ready,
            "stalled_s": round(self.engine.stalled_s, 3),
            "threads": self.runtime.threads,
            "unproved": self.doubt,
            "attestation": self.verdict.describe() if self.verdict else None,
        }

    def describe(self) -> dict[str, Any]:
        """The entry of `/v1/models`."""
        manifest = self.artifact.manifest
        parity = manifest.parity
        return {
            "id": self.name,
            "object": "model",
            "created": 0,
            "owned_by": "evenkeel",
            "kind": manifest.kind,
            "parameters": manifest.parameters,
            "layer_normalizations": manifest.layer_normalizations,
            "hyperparameters": manifest.hyperparameters,
            "provenance": manifest.provenance,
            "digest": self.artifact.digest,
            "runtime": self.runtime.fingerprint,
            "threads": self.runtime.threads,
            "variant": None if manifest.variant.exact else manifest.variant.model_dump(),
            "system_fingerprint": self.fingerprint,
            "parity": None if parity is None else [finding.describe() for finding in parity],
            "unproved": self.doubt,
            "attestation": self.verdict.describe() if self.verdict else None,
        }


S = TypeVar("S", bound=ServedModel)


class Models:
    """All models of the service, by name; loading them creates the sessions."""

    def __init__(
        self, settings: Settings, metrics: Metrics, kinds: "Mapping[str, ServiceKind]"
    ) -> None:
        key = settings.state_key.get_secret_value() if settings.state_key else secrets.token_hex()
        if settings.state_key is None:
            log.info("EVENKEEL_STATE_KEY is not set: state tokens last until the service stops")
        runtime = choose_runtime(settings)
        self.stopping = False
        self._models: dict[str, ServedModel] = {}
        for name, artifact in load_artifacts(settings.artifacts).items():
            if runtime.provider == "cpu" and runtime.threads == 0:
                runner, chosen = fastest_runner(artifact, runtime)
            else:
                runner, chosen = make_runner(artifact, runtime), runtime
            kind = kinds[artifact.manifest.kind]
            codec = StateCodec(key.encode(), artifact, chosen.fingerprint, kind.edge)
            model = kind.model(artifact, chosen, codec, allow_unproved=settings.allow_unproved)
            model.engine = Engine(
                runner,
                metrics.of_engine(name),
                chunk_steps=settings.chunk_steps,
                first_chunk_steps=settings.first_chunk_steps,
                queue_size=settings.queue_size,
                attest=model.attest,
                name=name,
                another=partial(make_runner, artifact, chosen),
            )
            self._models[name] = model

    def start(self) -> None:
        """Start every engine; each attests its model first."""
        for model in self._models.values():
            model.engine.start()

    def stop(self) -> None:
        """Stop every engine."""
        for model in self._models.values():
            model.engine.stop()

    @property
    def ready(self) -> bool:
        """Whether every model has proved itself, and the service means to stay."""
        return not self.stopping and all(model.engine.ready for model in self._models.values())

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __getitem__(self, name: str) -> ServedModel:
        """Raises `UnknownModel`."""
        if name not in self._models:
            known = ", ".join(self._models)
            raise UnknownModel(f"model is {name!r}; this service has: {known}", "model")
        return self._models[name]

    def of(self, kind: type[S]) -> list[S]:
        """The models of a class."""
        return [model for model in self if isinstance(model, kind)]

    def pick(self, name: str | None, kind: type[S]) -> S:
        """The model of that name and class, or the only one of it if no name is given.

        Raises `UnknownModel`, and `InvalidRequest` for a model of another kind.
        """
        able = self.of(kind)
        if name is None:
            if len(able) != 1:
                names = ", ".join(model.name for model in able) or "none"
                raise UnknownModel(f"model is missing; those that can do this: {names}", "model")
            return able[0]
        model = self[name]
        if not isinstance(model, kind):
            what = model.artifact.manifest.kind
            raise InvalidRequest(f"model {name!r} is of kind {what}, which cannot do this", "model")
        return model
