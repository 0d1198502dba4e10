"""One thing changes at a time among the models of a service."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from service.catalogue import Models
from service.kinds import KINDS
from service.metrics import Metrics
from tests.service.serving import settings


class _Turns(asyncio.Lock):
    """Tells that somebody finds it taken."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        if self.locked():
            self.wanted.set()
        return await super().acquire()


@pytest.mark.parametrize(
    "second",
    [
        lambda models: models.load("noise", again=True),  # two proofs at once
        lambda models: models.unload("letters"),  # which would serve again as it is loaded
        lambda models: models.look(),  # which may load it as well
        lambda models: models.compare(),  # beside a proof
    ],
    ids=["load", "unload", "look", "compare"],
)
def test_what_changes_models_waits_for_what_does_already(
    artifacts: Path, second: Callable[[Models], Awaitable[Any]]
) -> None:
    models = Models(settings(artifacts), Metrics(), KINDS)
    served = list(models)  # and held: none of them is stopped, as none has started
    for model in served:
        model.engine.attested.set()
    begun: list[asyncio.Future[Any]] = []

    async def change() -> None:
        models._changing = turns = _Turns()

        async def swap(*_: Any, **__: Any) -> None:
            if not begun:
                begun.append(asyncio.ensure_future(second(models)))
                wanted = asyncio.ensure_future(turns.wanted.wait())
                await asyncio.wait({begun[0], wanted}, return_when=asyncio.FIRST_COMPLETED)
                assert not begun[0].done()

        models._swap = swap  # type: ignore[method-assign]
        await models.load("letters", again=True)
        await begun[0]

    asyncio.run(asyncio.wait_for(change(), 20))
    assert served
