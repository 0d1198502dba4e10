"""A model followed step by step: what is sent is read, and what may come next is shown.

A session keeps its state ahead: the last symbol it was sent has been read, and one that the model
drew stands in its place as pending, until the caller says what really came.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from contract.golden import Arrays
from service.engine.engine import Engine
from service.engine.given import GivenSteps, run_steps
from service.models import ServedModel
from service.state import Edge, Moment

MOST_STEPS = 4096  # of one message


class Online(ABC):
    """A session with a model of any kind: where it stands, and how it moves on.

    What is pending is the first state of the graph, as everything it emits is.
    """

    def __init__(self, model: ServedModel, moment: Moment[Any], row: Arrays) -> None:
        self.steps = moment.drawn
        self.ran = 0  # steps, whether or not it has come further by them
        self.seed = moment.seed
        self.told: dict[str, Any] = dict(moment.told())
        self._begun = moment
        self._model = model
        self._state = moment.state
        self._row = row
        self._pending = model.artifact.manifest.ports.state[0].name
        self._ahead = moment.edge.ahead

    @property
    def engine(self) -> Engine:
        """That of the model it follows."""
        return self._model.engine

    @abstractmethod
    async def answer(self, message: Any) -> dict[str, Any]:
        """What is said to one message; arrays `(n,)` stand for many numbers. Raises pydantic's
        `ValidationError` or `InvalidRequest` for one that breaks a rule."""

    def token(self) -> str:
        """Where it stands, to go on from exactly there."""
        now = replace(self._begun, state=self._state, drawn=self.steps, edge=self._edge())
        return self._model.codec.encode(now)

    def standing(self) -> Self:
        """A copy of the session as it stands now, to take a token from if the next message fails.
        It is made before every message, so it is no `Moment`, which takes ten times as long."""
        return copy(self)

    def _edge(self) -> Edge:
        """The edge of the moment at which the session stands."""
        edge: Edge = self._begun.edge.model_copy(update={"ahead": self._ahead})
        return edge

    @abstractmethod
    def _noise(self, count: int) -> Arrays:
        """What the next `count` steps draw with, by port."""

    async def _read(self, sent: np.ndarray, *, admitted: bool = False) -> Arrays:
        """Read what the caller sent `(n, ...)`; the last output tells of what comes after it."""
        if self._ahead:
            self._state = self._state | {self._pending: sent[0]}
            known = sent[1:]
        else:
            known = sent  # before them stands what the state begins with
        forced = np.concatenate([known, np.zeros((1, *sent.shape[1:]), sent.dtype)])
        outputs, _ = await self._run(forced, np.arange(len(forced)) < len(known), admitted=admitted)
        return outputs

    async def _write(self, count: int, *, admitted: bool = False) -> tuple[np.ndarray, Arrays]:
        """Let the model go on: what it drew `(count, ...)`, and the outputs of its steps."""
        before = np.asarray(self._state[self._pending])
        unused = np.zeros((count + (not self._ahead), *before.shape), before.dtype)
        extra = len(unused) - count
        drawn_first = before[None] if self._ahead else before[None][:0]
        none = np.zeros(len(unused), bool)
        outputs, drawn = await self._run(unused, none, admitted=admitted)
        return np.concatenate([drawn_first, drawn])[:count], {
            name: array[extra:] for name, array in outputs.items()
        }

    async def _run(
        self, forced: np.ndarray, force: np.ndarray, *, admitted: bool = False
    ) -> tuple[Arrays, np.ndarray]:
        """The outputs of the steps, and what they emitted. A message of which some have been made
        is `admitted`, and is not refused the others."""
        inputs = {"forced": forced, "force": force} | self._noise(len(force))
        job = GivenSteps(self._state, self._row, inputs, wants_state=True)
        try:
            if not self.engine.run_now(job):
                await run_steps(self.engine, [job], admitted=admitted)
        finally:
            self.ran += len(force) - job.steps_wanted()
        self._state, self._ahead = job.state, True
        self.steps += len(force)
        outputs = job.outputs
        return outputs, next(iter(outputs.values()))
