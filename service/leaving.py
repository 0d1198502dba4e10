"""Models that were unloaded or replaced: whoever still holds one may go on with it for a while."""

import asyncio
import time
import weakref
from collections.abc import Callable

from service.engine.engine import Engine
from service.memory import give_back
from service.models import ServedModel

_LOOK_S = 0.05  # between two looks at whether anybody still holds a model
_LAST_WORDS_S = 3.0  # of sessions, to whoever reads them


class Leaving:
    """Stops the engine of each once nobody holds its model, or the drain is over.

    `on_leaving` hears of an engine before it is stopped, `on_gone` is called after that.
    """

    def __init__(
        self, drain_s: float, on_leaving: Callable[[Engine], None], on_gone: Callable[[], None]
    ) -> None:
        self.engines: list[Engine] = []
        self._drain_s = drain_s
        self._on_leaving, self._on_gone = on_leaving, on_gone
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, engine: Engine, held: "weakref.ref[ServedModel]") -> None:
        """One more, of a model that is held as long as `held` finds it."""
        self.engines.append(engine)
        task = asyncio.create_task(self._end(engine, held))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self, engine: Engine, held: "weakref.ref[ServedModel]") -> None:
        async def let_go(within_s: float) -> None:
            until_s = time.monotonic() + within_s
            while held() is not None and time.monotonic() < until_s:
                await asyncio.sleep(_LOOK_S)

        await let_go(self._drain_s)
        self._on_leaving(engine)
        await let_go(_LAST_WORDS_S)
        await asyncio.to_thread(engine.stop)
        while engine.stalled_s:  # one that is stuck stays, for `/livez`
            await asyncio.sleep(_LOOK_S)
        self.engines.remove(engine)
        del engine  # the last that holds its sessions
        self._on_gone()
        await asyncio.to_thread(give_back)
