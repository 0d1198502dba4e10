"""The models being served: each an artifact, an engine, a codec for its state, and a verdict."""

import asyncio
import logging
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from service.artifact import Artifact, load_artifacts
from service.attestation import GoldenRow, Verdict, attest, golden_rows, judge
from service.engine import Engine
from service.errors import UnknownModel
from service.ink.measure import Measures
from service.metrics import Metrics
from service.runtime import Runner, Runtime, choose_runtime, make_runner
from service.settings import Settings
from service.state import Moment, StateCodec
from service.threads import fastest_runner

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ServedModel:
    """One model; its engine's thread fills in the verdict."""

    artifact: Artifact
    runtime: Runtime
    codec: StateCodec
    styles: dict[str, Moment] = field(default_factory=dict)  # the stored hands, by id
    looks: dict[str, Measures] = field(default_factory=dict)  # of those that were asked for
    engine: Engine = field(init=False)
    verdict: Verdict | None = None

    @property
    def fingerprint(self) -> str:
        """Names the artifact's content and the runtime: `system_fingerprint` of completions."""
        return f"{self.artifact.digest[:16]}-{self.runtime.fingerprint}"

    def attest(self, runner: Runner) -> bool:
        """Replay the golden vectors and keep the verdict; whether it is good."""
        verdict = attest(self.artifact, runner)
        self._keep(verdict)
        return verdict.ok

    async def attest_now(self) -> Verdict:
        """Replay the golden vectors in the queue, beside whatever else is being served.

        A model that no longer agrees stops being ready. Raises what `submit` raises.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Queue[GoldenRow] = asyncio.Queue()
        rows = golden_rows(
            self.artifact, lambda row: loop.call_soon_threadsafe(ended.put_nowait, row)
        )
        self.engine.submit(rows)
        for _ in rows:
            row = await ended.get()
            if row.error is not None:
                raise row.error
        outputs = [row.outputs for row in rows]
        joined = {name: np.stack([o[name] for o in outputs], axis=1) for name in outputs[0]}
        self._keep(judge(self.artifact, joined))
        assert self.verdict is not None
        self.engine.ready = self.engine.ready and self.verdict.ok
        return self.verdict

    def _keep(self, verdict: Verdict) -> None:
        self.verdict = verdict
        log.log(
            logging.INFO if verdict.ok else logging.ERROR,
            "%s: attestation %s, max error %.2g (bound %.2g): %s",
            self.artifact.name,
            "ok" if verdict.ok else "FAILED",
            verdict.max_error,
            verdict.bound,
            verdict.detail,
        )

    def describe(self) -> dict[str, Any]:
        """The entry of `/v1/models`."""
        manifest = self.artifact.manifest
        return {
            "id": self.artifact.name,
            "object": "model",
            "created": 0,
            "owned_by": "evenkeel",
            "kind": manifest.kind,
            "parameters": manifest.parameters,
            "hyperparameters": manifest.hyperparameters,
            "provenance": manifest.provenance,
            "ink": manifest.ink.model_dump() if manifest.ink else None,
            "digest": self.artifact.digest,
            "runtime": self.runtime.fingerprint,
            "threads": self.runtime.threads,
            "variant": manifest.variant.model_dump() if manifest.variant else None,
            "system_fingerprint": self.fingerprint,
            "parity": manifest.parity,
            "attestation": self.verdict.describe() if self.verdict else None,
        }


class Models:
    """All models of the service, by name; loading them creates the sessions."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        key = settings.state_key.get_secret_value() if settings.state_key else secrets.token_hex()
        if settings.state_key is None:
            log.info("EVENKEEL_STATE_KEY is not set: state tokens last until the service stops")
        runtime = choose_runtime(settings)
        self._models: dict[str, ServedModel] = {}
        for name, artifact in load_artifacts(settings.artifacts).items():
            if runtime.provider == "cpu" and runtime.threads == 0:
                runner, chosen = fastest_runner(artifact, runtime)
            else:
                runner, chosen = make_runner(artifact, runtime), runtime
            codec = StateCodec(key.encode(), artifact, chosen.fingerprint)
            model = ServedModel(artifact, chosen, codec, stored_styles(artifact))
            model.engine = Engine(
                runner,
                metrics.of_engine(name),
                chunk_steps=settings.chunk_steps,
                first_chunk_steps=settings.first_chunk_steps,
                queue_size=settings.queue_size,
                attest=model.attest,
                name=name,
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
        """Whether every model has proved itself."""
        return all(model.engine.ready for model in self._models.values())

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __getitem__(self, name: str) -> ServedModel:
        """Raises `UnknownModel`."""
        if name not in self._models:
            known = ", ".join(self._models)
            raise UnknownModel(f"model is {name!r}; this service has: {known}", "model")
        return self._models[name]


def stored_styles(artifact: Artifact) -> dict[str, Moment]:
    """The stored hands of an artifact, by id."""
    states = artifact.style_states()
    return {
        style.id: Moment(states[style.id], 0, 0, 0, context=style.context, height=style.height)
        for style in artifact.manifest.styles
    }
