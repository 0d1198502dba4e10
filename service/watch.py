"""Looks at the artifacts from time to time, and when it is asked to."""

import asyncio
import logging
from contextlib import suppress

from service.catalogue import Models

log = logging.getLogger(__name__)


class Watch:
    """Looks every `watch_s` seconds, or only when asked if that is 0."""

    def __init__(self, models: Models, watch_s: float) -> None:
        self._models = models
        self._watch_s = watch_s
        self._asked = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def ask(self) -> None:
        """Have it look now, also at what failed before. May be called by a signal handler."""
        if self._loop is None:
            self._asked.set()  # for its first look
        elif not self._loop.is_closed():  # a hang-up may come late
            self._loop.call_soon_threadsafe(self._asked.set)

    async def run(self) -> None:
        """Look until cancelled."""
        self._loop = asyncio.get_running_loop()
        told = ""  # why the last look failed, which may be what the next do for hours
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), self._watch_s or None)
            again = self._asked.is_set()
            self._asked.clear()
            try:
                await self._models.look(again=again)
                told = ""
            except Exception as error:  # the next look may do better
                if (why := repr(error)) != told:
                    log.exception("a look at the artifacts failed")
                told = why
