"""The services that tests share, as two replicas of Ray Serve: with them `make ray-check` runs
every test that asks nothing but HTTP and WebSockets."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import httpx
import pytest
from pydantic import SecretStr
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as open_socket

from service.settings import Settings
from tests.scale.fleets import rayed
from tests.service.serving import Service

_REPLICAS = 2
_LIMIT_S = 60.0


class Through(httpx.Client):
    """Asks a URL what tests ask Starlette's client."""

    @contextmanager
    def websocket_connect(
        self, path: str, headers: dict[str, str] | None = None
    ) -> Iterator["Socket"]:
        """An open session."""
        url = str(self.base_url.copy_with(scheme="ws", path=path))
        try:
            opened = open_socket(url, additional_headers=headers, max_size=None, proxy=None)
        except InvalidStatus as refused:
            raise WebSocketDisconnect from refused
        with opened as socket:
            yield Socket(socket)

    def send(self, *given: Any, **named: Any) -> httpx.Response:
        try:
            return super().send(*given, **named)
        except httpx.LocalProtocolError as error:
            pytest.skip(f"the client does not send it: {error}")

    @property
    def portal(self) -> NoReturn:
        """What reaches into the process of the application, which is another."""
        pytest.skip("looks into the process of the service")


class Socket:
    """A WebSocket with the words of Starlette's."""

    def __init__(self, opened: ClientConnection) -> None:
        self._open = opened

    def send_text(self, text: str) -> None:
        self._open.send(text)

    def send_bytes(self, data: bytes) -> None:
        self._open.send(data)

    def send_json(self, content: Any) -> None:
        self._open.send(json.dumps(content))

    def receive_text(self) -> str:
        return str(self._received(text=True))

    def receive_bytes(self) -> bytes:
        return bytes(self._received(text=False))

    def receive_json(self) -> Any:
        return json.loads(self.receive_text())

    def _received(self, *, text: bool) -> str | bytes:
        try:
            message = self._open.recv(timeout=_LIMIT_S)
        except ConnectionClosed as end:
            if end.rcvd is None:
                raise  # cut without a word
            raise WebSocketDisconnect(end.rcvd.code, end.rcvd.reason) from end
        assert isinstance(message, str) is text
        return message


class _Elsewhere:
    """In place of the application, which is in other processes."""

    def __getattr__(self, _: str) -> NoReturn:
        pytest.skip("looks into the application")


@contextmanager
def through_ray(chosen: Settings) -> Iterator[Service]:
    """Two replicas with the settings of a service that would have run in this process."""
    told = chosen.model_dump(exclude_unset=True)
    settings = {f"EVENKEEL_{name.upper()}": _word(value) for name, value in told.items()}
    with (
        rayed(_REPLICAS, settings) as fleet,
        Through(base_url=fleet.target.url(""), timeout=_LIMIT_S, trust_env=False) as client,
    ):
        yield Service(_Elsewhere(), client)


def _word(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return json.dumps(value) if isinstance(value, bool | tuple) else str(value)
