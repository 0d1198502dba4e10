"""A model that leaves: whoever follows it hears of that in time, and it is seen until its end."""

import asyncio
import threading
from typing import Any

import pytest

from service.leaving import Leaving


def test_who_holds_a_model_is_told_before_it_ends_and_nobody_waits_for_that_on_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said, looks = list[object](), iter(["held", "held still", None])
    monkeypatch.setattr("service.leaving._LAST_WORDS_S", 1e9)  # as long as it is held
    monkeypatch.setattr("service.leaving._LOOK_S", 0.0)

    def beside() -> bool:
        return threading.current_thread() is not threading.main_thread()

    class Engine:
        stalled_s = 0.0

        def stop(self) -> None:
            said.append(("stopped", beside(), len(leaving.engines)))

    def held() -> object:
        said.append(found := next(looks))
        return found

    async def leave() -> None:
        engine: Any = Engine()
        leaving.add(engine, held)  # type: ignore[arg-type]
        del engine
        await asyncio.gather(*leaving._tasks)

    leaving = Leaving(
        0.0, lambda engine: said.append("told"), lambda: said.append(("gone", len(leaving.engines)))
    )
    monkeypatch.setattr("service.leaving.give_back", lambda: said.append(("back", beside())))
    asyncio.run(asyncio.wait_for(leave(), 20))
    end = [("stopped", True, 1), ("gone", 0), ("back", True)]
    assert said == ["held", "told", "held still", None, *end]
