"""Tests that do little but wait, and are no matter to one another: all of them do so at once."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

Outcomes = dict[str, "Future[None]"]


class AtOnce:
    """A decorator of such tests of a file, which wants a fixture `over` of what `run` returns."""

    def __init__(self) -> None:
        self._tests: dict[str, Callable[..., None]] = {}

    def __call__(self, test: Callable[..., None]) -> Callable[[Outcomes], None]:
        self._tests[test.__name__] = test

        def told(over: Outcomes) -> None:
            over[test.__name__].result()

        told.__doc__ = test.__doc__
        return told

    def run(self, *given: Any) -> Outcomes:
        """What became of each, by its name, once all have ended."""
        with ThreadPoolExecutor(len(self._tests)) as pool:
            return {name: pool.submit(test, *given) for name, test in self._tests.items()}
