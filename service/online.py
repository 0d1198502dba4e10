"""A model followed step by step: what is sent is read, and what may come next is shown.

A session keeps its state ahead: the last token or point it was sent has been read, and one that
the model drew stands in its place as pending, until the caller says what really came.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from service.artifact import Arrays
from service.errors import InvalidRequest, ServiceError
from service.handwriting import SPACE_UNITS
from service.language import Sampling
from service.models import ServedModel
from service.noise import InkNoise, UniformStream
from service.state import Moment

_HEAVIEST = 6  # Gaussians of a mixture that are shown; the others weigh next to nothing


class Steps:
    """A job of the engine: exactly these steps, and the state after the last of them."""

    filtered = False
    wants_state = True
    started = False

    def __init__(
        self, state: Arrays, row: Arrays, inputs: Arrays, done: Callable[["Steps"], object]
    ) -> None:
        self.state = state
        self.row = row
        self.cancelled = False
        self.error: ServiceError | None = None
        self._inputs = inputs
        self._read = 0
        self._outputs: list[Arrays] = []
        self._done = done

    @property
    def outputs(self) -> Arrays:
        """What came out, `(T, ...)` each."""
        return {n: np.concatenate([o[n] for o in self._outputs]) for n in self._outputs[0]}

    def steps_wanted(self) -> int:
        return len(self._inputs["force"]) - self._read

    def inputs(self, steps: int) -> Arrays:
        part = slice(self._read, self._read + steps)
        return {name: array[part] for name, array in self._inputs.items()}

    def anchor(self, state: Arrays) -> None:
        """Not needed: it ends where a chunk does."""

    def accept(self, outputs: Arrays) -> bool:
        self._outputs.append(outputs)
        self._read += len(next(iter(outputs.values())))
        return self.steps_wanted() == 0

    def replay(self) -> None:
        """The state after the chunk is the one."""

    def finish(self, state: Arrays | None) -> None:
        assert state is not None
        self.state = state
        self._done(self)

    def fail(self, error: ServiceError) -> None:
        self.error = error
        self._done(self)

    def publish(self) -> None:
        """Nothing is shown before all of it is there."""


class Online:
    """What a session of either kind shares: where it stands, and how it moves on."""

    def __init__(self, model: ServedModel, moment: Moment, row: Arrays, pending: str) -> None:
        self.steps = 0
        self._model = model
        self._state = moment.state
        self._row = row
        self._pending = pending  # the state that holds what is to be read next
        self._ahead = False

    def _noise(self, count: int) -> Arrays:
        raise NotImplementedError

    async def _read(self, sent: np.ndarray) -> Arrays:
        """Read what the caller sent `(n, ...)`; the last output tells of what comes after it."""
        if self._ahead:
            self._state = self._state | {self._pending: sent[0]}
            known = sent[1:]
        else:
            known = sent  # before them stands what the state begins with
        forced = np.concatenate([known, np.zeros((1, *sent.shape[1:]), sent.dtype)])
        return await self._run(forced, np.arange(len(forced)) < len(known))

    async def _write(self, count: int) -> tuple[np.ndarray, Arrays]:
        """Let the model go on: what it drew `(count, ...)`, and the outputs of its steps."""
        before = np.asarray(self._state[self._pending])
        unused = np.zeros((count + (not self._ahead), *before.shape), before.dtype)
        extra = len(unused) - count
        drawn_first = before[None] if self._ahead else before[None][:0]
        outputs = await self._run(unused, np.zeros(len(unused), bool))
        drawn = np.concatenate([drawn_first, outputs[self._drawn]])[:count]
        return drawn, {name: array[extra:] for name, array in outputs.items()}

    _drawn = "next"

    async def _run(self, forced: np.ndarray, force: np.ndarray) -> Arrays:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Steps] = loop.create_future()

        def tell(job: Steps) -> None:
            if not ended.done():  # nobody waits any more if the caller has gone
                ended.set_result(job)

        def done(job: Steps) -> None:
            loop.call_soon_threadsafe(tell, job)

        inputs = {"forced": forced, "force": force} | self._noise(len(force))
        job = Steps(self._state, self._row, inputs, done)
        self._model.engine.submit([job])
        try:
            await ended
        finally:
            job.cancelled = True
        if job.error is not None:
            raise job.error
        self._state, self._ahead = job.state, True
        self.steps += len(force)
        return job.outputs


class OnlineText(Online):
    """A language model: bytes in, the distribution of the next byte out."""

    def __init__(self, model: ServedModel, seed: int) -> None:
        moment = Moment(model.artifact.initial_state(), seed, 0, 0)
        super().__init__(model, moment, Sampling().row(), "token")
        self._uniforms = UniformStream(seed)

    async def read(self, sent: bytes) -> list[float]:
        """Natural-log probabilities of all 256 bytes that may follow."""
        outputs = await self._read(np.frombuffer(sent, np.uint8).astype(np.int64))
        logits = outputs["logits"][-1].astype(np.float64)
        logits -= logits.max()
        shown: list[float] = (logits - np.log(np.exp(logits).sum())).round(6).tolist()
        return shown

    async def write(self, count: int) -> bytes:
        """Bytes of the model's own."""
        drawn, _ = await self._write(count)
        return drawn.astype(np.uint8).tobytes()

    def _noise(self, count: int) -> Arrays:
        return {"uniform": self._uniforms.take(self.steps, count)}


class OnlineInk(Online):
    """A handwriting model: pen points on a page in, the mixture of the next point out.

    The page has y down and `px_per_unit`; `origin` is the left end of the baseline in px.
    """

    _drawn = "drawn"

    def __init__(
        self,
        model: ServedModel,
        moment: Moment,
        row: Arrays,
        px_per_unit: float,
        origin: tuple[float, float] | None,
    ) -> None:
        super().__init__(model, moment, row, "point")
        self._scale = np.array([px_per_unit, -px_per_unit])
        self._at = None if origin is None else np.array(origin, np.float64)
        if self._at is not None and moment.context:
            # The hand's pen is still at the end of what it wrote last, a space before this line.
            self._at += np.array([-SPACE_UNITS, moment.height]) * self._scale
        self._ended = False
        self._normals = InkNoise(moment.seed)

    async def read(self, point: tuple[float, float, float]) -> dict[str, Any]:
        """The mixture of the point after this one, means in px."""
        x, y, up = point
        place = np.array([x, y], np.float64)
        offset = np.zeros(2) if self._at is None else (place - self._at) / self._scale
        self._at = place
        sent = np.array([[*offset, up]], np.float32)
        outputs = await self._read(sent)
        shown = self._mixture(outputs["mixture"][-1].astype(np.float64))
        return shown | {"character": int(outputs["character"][-1])}

    async def write(self, count: int) -> tuple[list[list[float]], bool]:
        """Points `[x, y, up]` of the model's own up to the end of the text, and if it came."""
        if self._ended:
            raise InvalidRequest("the text has ended; open another session to go on", "write")
        drawn, outputs = await self._write(count)
        # A step that reads a point says whether the text had ended with it.
        ended = np.flatnonzero(outputs["ended"])
        self._ended = bool(len(ended))
        if len(ended):
            drawn = drawn[: ended[0] + 1]
        start = np.zeros(2) if self._at is None else self._at
        places = start + drawn[:, :2].astype(np.float64).cumsum(0) * self._scale
        self._at = places[-1]
        points = [[round(x, 2), round(y, 2), float(u)] for (x, y), u in zip(
            places.tolist(), drawn[:, 2].tolist(), strict=True)]  # fmt: skip
        return points, bool(len(ended))

    def _mixture(self, raw: np.ndarray) -> dict[str, Any]:
        """Raw outputs `(6M + 1,)` as numbers on the page (Graves 2013, eq. 18-22)."""
        assert self._at is not None
        pen_up, rest = raw[0], raw[1:].reshape(6, -1)
        weight = np.exp(rest[0] - rest[0].max())
        weight /= weight.sum()
        mean = self._at[:, None] + rest[1:3] * self._scale[:, None]
        sigma = np.exp(np.clip(rest[3:5], -4, 4)) * np.abs(self._scale)[:, None]
        # The page's y points down, which turns the tilt round.
        rho = -np.tanh(np.clip(rest[5], -5, 5))
        heaviest = np.argsort(-weight, kind="stable")[:_HEAVIEST]
        return {
            "pen_up": float(1 / (1 + np.exp(-pen_up))),
            "mixture": [
                {
                    "weight": float(weight[m]),
                    "mean": mean[:, m].round(2).tolist(),
                    "sigma": sigma[:, m].round(3).tolist(),
                    "rho": float(rho[m]),
                }
                for m in heaviest
            ],
        }

    def _noise(self, count: int) -> Arrays:
        uniforms, normals = self._normals.take(self.steps, count)
        return {"uniform": uniforms, "normal": normals}
