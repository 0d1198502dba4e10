"""Liveness, readiness, health, metrics, and the models being served."""

from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from service.catalogue import Models
from service.errors import NotReady, UnknownModel
from service.http import record
from service.http.answers import unless_gone
from service.http.cards import Attestation, Card, Cards, Health
from service.http.described import BUSY, RETRY_AFTER, TEXT, ErrorBody, Responses, fails
from service.http.methods import Routes
from service.models import ServedModel

router = Routes(tags=["service"])


_UNREADY: Responses = {
    503: {"headers": RETRY_AFTER, "content": {"text/plain": TEXT | {"example": "not ready"}}}
}
_LAME = {
    "status": "not ready",
    "models": {
        "shakespeare": {"ready": False, "state": "failed", "failed": "step.onnx is missing"}
    },
}
_UNHEALTHY: Responses = {
    503: {
        "headers": RETRY_AFTER,
        "model": Health | ErrorBody,  # that of a service whose connections are all taken
        "content": {"application/json": {"example": _LAME}},
    }
}
_ASK_AGAIN = {"Retry-After": str(NotReady.retry_after_s)}


@router.get("/livez", response_class=PlainTextResponse, responses=_UNREADY)
async def livez(request: Request) -> PlainTextResponse:
    """200 while the process answers and no model is stuck in a run, else 503: restart it."""
    limit_s = request.app.state.settings.stall_timeout_s
    stuck = request.app.state.models.stuck(limit_s)
    if not stuck:
        return PlainTextResponse("ok")
    return PlainTextResponse(f"stuck: {', '.join(stuck)}", status_code=503, headers=_ASK_AGAIN)


@router.get("/readyz", response_class=PlainTextResponse, responses=_UNREADY)
async def readyz(request: Request) -> PlainTextResponse:
    """200 once models have replayed their golden vectors here and agreed, else 503: at least one,
    all that are required, and none is still at it. Names those that failed either way."""
    models: Models = request.app.state.models
    failed = ", ".join(
        name for name, place in models.places.named.items() if place.state == "failed"
    )
    also = f"; failed: {failed}" if failed else ""
    if models.ready:
        return PlainTextResponse(f"ok{also}")
    return PlainTextResponse(f"not ready{also}", status_code=503, headers=_ASK_AGAIN)


@router.get("/health", response_model=Health, responses=_UNHEALTHY)
async def health(request: Request) -> JSONResponse:
    """Each model's verdict, with the status of `/readyz`."""
    models: Models = request.app.state.models
    ready = models.ready  # at one look: it may change before another
    content = {
        "status": "ok" if ready else "not ready",
        "models": {name: place.health() for name, place in models.places.named.items()},
    }
    if ready:
        return JSONResponse(content)
    return JSONResponse(content, status_code=503, headers=_ASK_AGAIN)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Prometheus text format, in the version that every reader of it takes."""
    content = generate_latest(request.app.state.metrics.registry)
    return Response(content, media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get("/v1/models", response_model=Cards)
async def list_models(request: Request) -> dict[str, Any]:
    """All models, as OpenAI lists them."""
    models: Models = request.app.state.models
    return {"object": "list", "data": [models.describe(model) for model in models]}


@router.post(
    "/v1/models/{name}/attest",
    response_model=Attestation,
    responses=fails(UnknownModel, *BUSY),
)
async def attest(request: Request, name: str) -> Response:
    """Replay the golden vectors now, in the queue like any request, and return the verdict."""
    return await unless_gone(request, _attested(request.app.state.models[name]))


async def _attested(model: ServedModel) -> Response:
    record.current().model = model.name
    verdict = await model.attest_now(record.current().pay)
    return JSONResponse(verdict.describe())


@router.get("/v1/models/{name}", response_model=Card, responses=fails(UnknownModel))
async def get_model(request: Request, name: str) -> dict[str, Any]:
    """One model: its provenance, parity report, digest, runtime and attestation."""
    models: Models = request.app.state.models
    return models.describe(models[name])
