"""What only those may do who run the service: change the models it serves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request

from service.catalogue import Models
from service.errors import Forbidden, NotLoaded, NotReady, UnknownModel
from service.http import record
from service.http.cards import Card, Unloaded
from service.http.described import fails
from service.http.waits import to_its_end


def administrator(request: Request) -> None:
    """Raises `Forbidden` for anybody else."""
    caller = getattr(request.state, "caller", None)
    if caller is None or not caller.admin:
        raise Forbidden(
            "this wants an administrator's key or, of a service without keys on loopback, to come "
            "from there and through no proxy"
        )


Name = Annotated[str, Path(description="a model as `/health` names it", examples=["shakespeare"])]
# A folder that is called as the model of another has a slash after its name.
router = APIRouter(
    prefix="/v1/models/{name:path}", tags=["service"], dependencies=[Depends(administrator)]
)
_CHANGED = fails(Forbidden, UnknownModel, NotLoaded, NotReady)


@router.post("/reload", response_model=Card, responses=_CHANGED)
async def reload(request: Request, name: Name) -> dict[str, Any]:
    """Read a model's folder again and swap the model, even for the same; the answer comes once the
    new one has proved itself. A folder that cannot be served leaves the old one serving."""
    models = _models(request)
    with _recorded(name):
        return models.describe(await to_its_end(models.load(name, again=True)))


@router.post("/load", response_model=Card, responses=_CHANGED)
async def load(request: Request, name: Name) -> dict[str, Any]:
    """Serve a model that is in the artifacts folder, if it is not served as it is there."""
    models = _models(request)
    with _recorded(name):
        return models.describe(await to_its_end(models.load(name, again=False)))


@router.post("/unload", response_model=Unloaded, responses=fails(Forbidden, UnknownModel, NotReady))
async def unload(request: Request, name: Name) -> dict[str, Any]:
    """Serve a model no more, until it is loaded or the service restarts; what it is at it ends."""
    models = _models(request)
    with _recorded(name):
        await models.unload(name)
    return {"id": name, "unloaded": True}


def _models(request: Request) -> Models:
    models: Models = request.app.state.models
    if models.stopping:
        raise NotReady("the service is stopping")
    return models


@contextmanager
def _recorded(name: str) -> Iterator[None]:
    """The line of the log says which model it was, if there is one; else it may be any words."""
    record.current().model = name
    try:
        yield
    except UnknownModel:
        record.current().model = ""
        raise
