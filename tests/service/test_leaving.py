"""A model that leaves: whoever follows it hears of that in time, and it is seen until its end."""

import asyncio
import threading
import weakref
from typing import Any

import pytest

from service.leaving import Leaving
from tests.service.serving import eventually


@pytest.mark.parametrize(
    ("drain_s", "first"),
    [
        (0.0, ["held", "told", "held still", None]),
        (1e9, ["held", "held still", None, "told", None]),
    ],
)
def test_who_holds_a_model_is_told_before_it_ends_and_nobody_waits_for_that_on_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, drain_s: float, first: list[object]
) -> None:
    said, looks = list[object](), iter(["held", "held still", None, None])
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
        engines.append(weakref.ref(engine))
        leaving.add(engine, held)  # type: ignore[arg-type]
        del engine
        await asyncio.gather(*leaving._tasks)
        assert not leaving._tasks

    def gone() -> None:
        said.append(("gone", len(leaving.engines)))

    def give_back() -> None:
        said.append(("back", beside(), eventually(lambda: engines[0]() is None)))

    engines = list[weakref.ref[Any]]()
    leaving = Leaving(drain_s, lambda engine: said.append("told"), gone)
    monkeypatch.setattr("service.leaving.give_back", give_back)
    asyncio.run(asyncio.wait_for(leave(), 20))
    assert said == [*first, ("stopped", True, 1), ("gone", 0), ("back", True, True)]
