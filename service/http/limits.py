"""What a request may not exceed, refused while it arrives."""

from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import BodyTooLarge


class BodyLimit:
    """Refuses a body over the limit, by its declared length or while it arrives."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._limit = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self._limit:
            error = BodyTooLarge(self._message())
            await JSONResponse(error.body(), error.status)(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise HTTPException(BodyTooLarge.status, self._message())
            return message

        await self._app(scope, counted, send)

    def _message(self) -> str:
        return f"the request body is over {self._limit} bytes"
