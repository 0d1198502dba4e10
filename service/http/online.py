"""`/v1/online`: a WebSocket that follows what a caller does, one step at a time, batch size 1."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import numpy as np
from fastapi import Response, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.websockets import WebSocketState

from service.catalogue import Models
from service.engine import terms
from service.engine.engine import Engine
from service.errors import InvalidRequest, NoSuchRoute, NotReady, ServiceError
from service.frames import packed
from service.http import record
from service.http.callers import Account
from service.http.errors import answer_to, broken_rule
from service.http.methods import Routes
from service.http.sockets import ON_LOST
from service.http.waits import cut_short, turns
from service.kind import ServiceKind
from service.kinds import KINDS
from service.online import Online

router = Routes()
_PATH = "/v1/online"

_POLICY_VIOLATION = 1008
_GOING_AWAY = 1001
_SERVICE_RESTART = 1012
_DIGITS = 6  # after the point, in JSON
_ALONE_S = 0.005  # that a session may take of the event loop before others have their turn


class Sessions:
    """The sockets that are open. Each waits for a message most of its time, and is interrupted
    there when the service ends, or after `idle_timeout_s`."""

    def __init__(self, idle_timeout_s: float) -> None:
        self._idle_timeout_s = idle_timeout_s
        self._open: set[asyncio.Task[Any]] = set()
        self._waits: dict[asyncio.Timeout, Engine | None] = {}
        self._left: WeakSet[Engine] = WeakSet()
        self._ending = False

    def __len__(self) -> int:
        return len(self._open)

    def add(self, session: asyncio.Task[Any]) -> None:
        """One more, until it is done."""
        self._open.add(session)
        session.add_done_callback(self._open.discard)

    def end(self) -> None:
        """Every wait for a message raises `TimeoutError`, now and from now on."""
        if not self._ending:
            self._ending = True
            cut_short(self._waits)

    def leave(self, engine: Engine) -> None:
        """The same for those who follow a model that another takes the place of, or none."""
        self._left.add(engine)
        cut_short(wait for wait, followed in self._waits.items() if followed is engine)

    def why(self, engine: Engine | None) -> tuple[int, str]:
        """Code and reason of the end of a session whose wait has timed out."""
        if self._ending:
            return _SERVICE_RESTART, "the service is stopping"
        if engine in self._left:
            return _SERVICE_RESTART, "the model is being replaced"
        return _GOING_AWAY, f"no message came for {self._idle_timeout_s} s"

    async def message(self, socket: WebSocket, engine: Engine | None = None) -> Any:
        """What comes next to a session that follows the model of this engine: JSON, or bytes.
        Raises `InvalidRequest` for text that is no JSON."""
        if self._ending or engine in self._left:
            raise TimeoutError  # whatever has come meanwhile
        async with asyncio.timeout(self._idle_timeout_s) as wait:
            self._waits[wait] = engine
            try:
                message = await socket.receive()
            finally:
                del self._waits[wait]
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"], message.get("reason"))
        frame = message.get("bytes")
        said = message["text"] if frame is None else frame
        await turns().to_read(len(said))
        if frame is not None:
            return frame
        try:
            return json.loads(said)
        except (ValueError, RecursionError) as error:
            raise InvalidRequest("a message must be JSON text") from error


class _Addressed(BaseModel):
    """As much of the first message as says which model reads the rest."""

    model: str


@router.websocket(_PATH)
async def online(socket: WebSocket) -> None:
    """Follow a caller until it leaves, breaks a rule, or the service ends."""
    sessions: Sessions = socket.app.state.sessions
    task, gone = asyncio.current_task(), False
    assert task is not None
    sessions.add(task)

    def leave() -> None:
        nonlocal gone
        gone = True
        task.cancel()

    socket.scope["state"][ON_LOST] = leave
    try:
        await socket.accept()
        await _answer(socket, sessions)
    except WebSocketDisconnect:
        del socket.scope["state"][ON_LOST]  # which would interrupt what hears of it
        await _hear_the_end(socket)
    except asyncio.CancelledError:
        if not gone:
            raise
        await _hear_the_end(socket)


async def _hear_the_end(socket: WebSocket) -> None:
    """Of a caller that has left, which was seen by what it could not be told any more: the code it
    left with comes after all that it said before."""
    while socket.client_state is not WebSocketState.DISCONNECTED:
        await socket.receive()


@router.get(_PATH, include_in_schema=False)
async def not_a_socket() -> Response:
    """A request that asks for no WebSocket, as of a browser's address bar or a proxy that passes
    no upgrades on."""
    raise NoSuchRoute(f"{_PATH} is a WebSocket; a proxy in front has to pass the upgrade on")


async def elsewhere(socket: WebSocket) -> None:
    """Say where there is one: the framework would say nothing, and files know of no sockets."""
    error = NoSuchRoute(f"there is no WebSocket at this path; there is one at {_PATH}")
    await socket.send_denial_response(answer_to(error))


async def _answer(socket: WebSocket, sessions: Sessions) -> None:
    try:
        await _follow(socket, sessions)
    except (ValidationError, ServiceError) as error:
        await _refuse(socket, error)


async def _follow(socket: WebSocket, sessions: Sessions) -> None:
    session: Online | None = None
    with suppress(TimeoutError):
        opening = await sessions.message(socket)
        terms.agree(socket.app.state.settings.deadline_s)
        session, kind, facts = await _open(socket.app.state.models, opening)
        await socket.send_text(json.dumps(facts))
        others_s = 0.0
        while True:
            # Messages that have come together are had without a wait, and so may their answers be.
            if time.monotonic() > others_s:
                await asyncio.sleep(0)
                others_s = time.monotonic() + _ALONE_S
            before = session.standing()
            try:
                message = await sessions.message(socket, session.engine)
                terms.agree(socket.app.state.settings.deadline_s)
                answer = await _answer_to(message, socket, session, kind)
            except (ValidationError, ServiceError) as error:
                return await _refuse(socket, error, before)
            if isinstance(message, bytes):
                await socket.send_bytes(packed(answer))
            else:  # writes 256 numbers in a sixth of the time of json.dumps
                await socket.send_text(to_json(answer, fallback=_rounded).decode())
    code, why = sessions.why(None if session is None else session.engine)
    await socket.send_text(json.dumps({"closing": why} | _where(session)))
    await socket.close(code)


async def _answer_to(
    message: Any, socket: WebSocket, session: Online, kind: ServiceKind
) -> dict[str, Any]:
    # By what the file of keys says now: a session has no end of its own.
    known: Callable[[], Account] | None = getattr(socket.state, "known", None)
    account = None if known is None else known()
    if _asks_for_state(message):
        return {"state": session.token(), "step": session.steps}
    if isinstance(message, dict) and "state" in message:
        raise InvalidRequest('state is asked for by {"state": true} and nothing else', "state")
    with _charged(account, session):
        return await session.answer(_said(kind, message))


def _asks_for_state(message: Any) -> bool:
    # By identity: to Python 1 equals true.
    return isinstance(message, dict) and [*message] == ["state"] and message["state"] is True


def _said(kind: ServiceKind, message: Any) -> Any:
    """A message as JSON; a binary one as that it stands for."""
    if not isinstance(message, bytes):
        return message
    if kind.frame is None:
        raise InvalidRequest("messages to this model must be JSON text")
    return kind.frame.said(message)


def _rounded(numbers: np.ndarray) -> Any:
    return numbers.round(_DIGITS).tolist()


async def _open(models: Models, message: Any) -> tuple[Online, ServiceKind, dict[str, Any]]:
    if isinstance(message, bytes):
        raise InvalidRequest("the first message must be JSON text: it names a model")
    name = _Addressed.model_validate(message).model
    model = models[name]
    record.current().model = name
    kind = KINDS[model.artifact.manifest.kind]
    model.engine.submit([])  # nothing, or NotReady: one that is not ready opens no session
    session = await kind.follow(model, kind.opening.model_validate(message))
    facts = {"model": name, "kind": kind.name, "seed": session.seed}
    return session, kind, facts | {"system_fingerprint": model.fingerprint} | session.told


@contextmanager
def _charged(account: Account | None, session: Online) -> Iterator[None]:
    """Charge the steps of an answer to the key of whoever asks, which must have some left."""
    if account is not None:
        account.check()
        record.current().charge = account.charge  # its key may have another name by now
    before = session.ran
    try:
        yield
    finally:
        record.current().pay(session.ran - before)


def _where(session: Online | None) -> dict[str, str]:
    return {} if session is None else {"state": session.token()}


async def _refuse(
    socket: WebSocket, error: ValidationError | ServiceError, before: Online | None = None
) -> None:
    """Say what went wrong, and where the session stood before; the socket is closed with that."""
    if isinstance(error, ValidationError):
        error = broken_rule(error.errors(), "the message")
    record.current().fail(error)
    await socket.send_text(json.dumps({**error.body(), **_where(before)}))
    await socket.close(_SERVICE_RESTART if isinstance(error, NotReady) else _POLICY_VIOLATION)
