"""Liveness, readiness, health, metrics, and the models being served."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from service.errors import NotReady, UnknownModel
from service.http.described import BUSY, RETRY_AFTER, TEXT, Responses, fails
from service.models import Models

router = APIRouter()


_UNREADY: Responses = {503: {"headers": RETRY_AFTER, "content": {"text/plain": TEXT}}}
_UNHEALTHY: Responses = {503: {"headers": RETRY_AFTER, "model": dict[str, Any]}}
_ASK_AGAIN = {"Retry-After": str(NotReady.retry_after_s)}


@router.head("/livez", response_class=PlainTextResponse, responses=_UNREADY)
@router.get("/livez", response_class=PlainTextResponse, responses=_UNREADY)
async def livez(request: Request) -> PlainTextResponse:
    """200 while the process answers and no model is stuck in a run, else 503: restart it."""
    limit_s = request.app.state.settings.stall_timeout_s
    stuck = [m.name for m in request.app.state.models if m.engine.stalled_s > limit_s]
    if not stuck:
        return PlainTextResponse("ok")
    return PlainTextResponse(f"stuck: {', '.join(stuck)}", status_code=503, headers=_ASK_AGAIN)


@router.head("/readyz", response_class=PlainTextResponse, responses=_UNREADY)
@router.get("/readyz", response_class=PlainTextResponse, responses=_UNREADY)
async def readyz(request: Request) -> PlainTextResponse:
    """200 once every model has replayed its golden vectors here and agreed, else 503."""
    if request.app.state.models.ready:
        return PlainTextResponse("ok")
    return PlainTextResponse("not ready", status_code=503, headers=_ASK_AGAIN)


@router.head("/health", responses=_UNHEALTHY)
@router.get("/health", responses=_UNHEALTHY)
async def health(request: Request) -> JSONResponse:
    """Each model's verdict, with the status of `/readyz`."""
    models: Models = request.app.state.models
    content = {
        "status": "ok" if models.ready else "not ready",
        "models": {model.name: model.health() for model in models},
    }
    if models.ready:
        return JSONResponse(content)
    return JSONResponse(content, status_code=503, headers=_ASK_AGAIN)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Prometheus text format."""
    content = generate_latest(request.app.state.metrics.registry)
    return Response(content, media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/models")
async def list_models(request: Request) -> dict[str, Any]:
    """All models, as OpenAI lists them."""
    return {"object": "list", "data": [model.describe() for model in request.app.state.models]}


@router.post("/v1/models/{name}/attest", responses=fails(UnknownModel, *BUSY))
async def attest(request: Request, name: str) -> dict[str, Any]:
    """Replay the golden vectors now, in the queue like any request, and return the verdict."""
    verdict = await request.app.state.models[name].attest_now()
    description: dict[str, Any] = verdict.describe()
    return description


@router.get("/v1/models/{name}", responses=fails(UnknownModel))
async def get_model(request: Request, name: str) -> dict[str, Any]:
    """One model: its provenance, parity report, digest, runtime and attestation."""
    description: dict[str, Any] = request.app.state.models[name].describe()
    return description
