"""One model being served: an artifact, an engine, a codec for its state, and a verdict."""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from contract.golden import Verdict, worst
from service.artifact import Artifact
from service.attestation import attest, attest_in_queue
from service.engine.engine import Engine
from service.engine.runners import Runner
from service.engine.runtime import Runtime
from service.state import StateCodec

log = logging.getLogger(__name__)


class Speedup(NamedTuple):
    """How many times as fast as an exact model one of eight bits is here: a row alone, and some
    side by side."""

    alone: float
    crowded: float


class ServedModel:
    """One model; its engine's thread fills in the verdict. A kind may hold more of each of its own.

    `doubt` is why the artifact is no proof of anything, if it is not: such a model is not ready,
    unless the settings allow it. `speedups` are those of a model of eight bits, by the exact models
    that it was measured beside: they are gone with them.
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
        self.speedups: WeakKeyDictionary[ServedModel, Speedup] = WeakKeyDictionary()
        self._allow_unproved = allow_unproved

    @property
    def name(self) -> str:
        return self.artifact.name

    @property
    def precision(self) -> str:
        """That of its manifest: `float32` or `int8`."""
        return self.artifact.manifest.precision

    @property
    def fingerprint(self) -> str:
        """Names the artifact's content and the runtime: `system_fingerprint` of completions."""
        return f"{self.artifact.digest[:16]}-{self.runtime.fingerprint}"

    def attest(self, runner: Runner) -> bool:
        """Replay the golden vectors and keep the verdict; whether the model may serve."""
        if self.doubt is not None:
            log.warning("%s: not proved: %s", self.name, self.doubt)
        self._keep(worst([attest(self.artifact, part) for part in runner.parts]))
        return self._may_serve()

    async def attest_now(self, pay: Callable[[int], None]) -> Verdict:
        """Replay the golden vectors in the queue, beside whatever else is being served, and `pay`
        for the steps of it.

        A model that no longer agrees stops being ready. Raises what `submit` raises.
        """
        verdict = await attest_in_queue(self.artifact, self.engine, pay)
        self._keep(verdict)
        if not self._may_serve():  # that it may makes nothing ready: its engine may have ended
            self.engine.ready = False
        return verdict

    @property
    def problem(self) -> str | None:
        """Why it does not serve; None while it does, and while it is about to prove itself."""
        # In this order: its thread makes it ready first, and may do both between the two looks.
        if not self.engine.attested.is_set() or self.engine.ready:
            return None
        if self.verdict is None:
            return "its golden vectors could not be replayed; the log says why"
        if not self.verdict.ok:
            return f"it failed its attestation: {self.verdict.detail}"
        if not self._may_serve():
            return self.doubt
        return "its engine has ended; the log says why, and a reload makes another"

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
        """What its entry of `/health` has besides its state."""
        return {
            "stalled_s": round(self.engine.stalled_s, 3),
            "threads": self.engine.threads,
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
            "precision": self.precision,
            "hyperparameters": manifest.hyperparameters,
            "provenance": manifest.provenance,
            "digest": self.artifact.digest,
            "runtime": self.runtime.fingerprint,
            "threads": self.engine.threads,
            "variant": None if manifest.variant.exact else manifest.variant.model_dump(),
            "system_fingerprint": self.fingerprint,
            "parity": None if parity is None else [finding.describe() for finding in parity],
            "unproved": self.doubt,
            "ready": self.engine.ready,
            "failed": self.problem,
            "attestation": self.verdict.describe() if self.verdict else None,
        }
