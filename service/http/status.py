"""Liveness, readiness, health, metrics, and the models being served."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from service.models import Models

router = APIRouter()


@router.head("/livez", include_in_schema=False, response_class=PlainTextResponse)
@router.get("/livez", response_class=PlainTextResponse)
async def livez() -> str:
    """The process answers."""
    return "ok"


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", response_class=PlainTextResponse)
async def readyz(request: Request) -> PlainTextResponse:
    """200 once every model has replayed its golden vectors here and agreed, else 503."""
    if request.app.state.models.ready:
        return PlainTextResponse("ok")
    return PlainTextResponse("not ready", status_code=503, headers={"Retry-After": "2"})


@router.head("/health", include_in_schema=False)
@router.get("/health")
async def health(request: Request) -> JSONResponse:
    """Each model's verdict, with the status of `/readyz`."""
    models: Models = request.app.state.models
    content = {
        "status": "ok" if models.ready else "not ready",
        "models": {model.name: model.health() for model in models},
    }
    return JSONResponse(content, status_code=200 if models.ready else 503)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Prometheus text format."""
    content = generate_latest(request.app.state.metrics.registry)
    return Response(content, media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/models")
async def list_models(request: Request) -> dict[str, Any]:
    """All models, as OpenAI lists them."""
    return {"object": "list", "data": [model.describe() for model in request.app.state.models]}


@router.post("/v1/models/{name}/attest")
async def attest(request: Request, name: str) -> dict[str, Any]:
    """Replay the golden vectors now, in the queue like any request, and return the verdict."""
    verdict = await request.app.state.models[name].attest_now()
    description: dict[str, Any] = verdict.describe()
    return description


@router.get("/v1/models/{name}")
async def get_model(request: Request, name: str) -> dict[str, Any]:
    """One model: its provenance, parity report, digest, runtime and attestation."""
    description: dict[str, Any] = request.app.state.models[name].describe()
    return description
