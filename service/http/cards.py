"""What is said of models, as `/openapi.json` tells it."""

from typing import Any

from pydantic import ConfigDict

from service.http.described import Answer
from service.places import State


class Attestation(Answer):
    """The verdict of a replay of the golden vectors; null stands for what is not a number."""

    ok: bool
    max_error: float | None
    bound: float | None
    training_error: float | None
    steps: int
    detail: str


class Found(Answer):
    """A finding of the parity report."""

    name: str
    value: float | None
    bound: float | None
    detail: str
    holds: bool


class Card(Answer):
    """A model that is served; a kind may have more to say.

    `speedup` is how many times as fast as the exact model beside it one of eight bits is here,
    `speedup_crowded` the same with eight rows side by side, `default` whether it answers requests
    of its kind that name none, `ready` whether it answers any, and `failed` why it does not, once
    that is settled.
    """

    model_config = ConfigDict(extra="allow")

    id: str
    object: str
    created: int
    owned_by: str
    kind: str
    parameters: int
    layer_normalizations: int
    precision: str
    speedup: float | None
    speedup_crowded: float | None
    default: bool
    hyperparameters: dict[str, Any]
    provenance: dict[str, Any]
    digest: str
    runtime: str
    threads: int
    variant: dict[str, Any] | None
    system_fingerprint: str
    parity: list[Found] | None
    unproved: str | None
    ready: bool
    failed: str | None
    attestation: Attestation | None


class Cards(Answer):
    """All models that are served."""

    object: str
    data: list[Card]


class Standing(Answer):
    """How one model is; `failed` is why it is not served, or not as its folder has it now."""

    ready: bool
    state: State
    failed: str | None
    stalled_s: float | None = None
    threads: int | None = None
    unproved: str | None = None
    attestation: Attestation | None = None


class Health(Answer):
    """How all of them are; `status` is that of `/readyz`."""

    status: str
    models: dict[str, Standing]


class Unloaded(Answer):
    """A model that is served no more."""

    id: str
    unloaded: bool
