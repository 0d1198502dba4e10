"""Files that are sent as they are: the page, its site, and what shows the API's document."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import file_digest, sha256
from os import stat_result
from pathlib import Path
from stat import S_ISREG
from typing import Any

from anyio import open_file  # noqa: F401  # which would load for the first who wants one
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.staticfiles import NotModifiedResponse
from starlette.types import Scope

ASK_AGAIN = {"Cache-Control": "no-cache"}  # an old script must not meet a new page


class Files(StaticFiles):
    """Those of a folder, with these headers. Their tags are of what is in them, and they tell no
    time: all may have the same."""

    def __init__(self, *, headers: Mapping[str, str] = ASK_AGAIN, **where: Any) -> None:
        super().__init__(**where)
        self._headers = headers

    def lookup_path(self, path: str) -> tuple[str, stat_result | None]:
        """Where a file is. It is read for its tag here, on a thread of its own, for it may be that
        of a model."""
        found, stat = super().lookup_path(path)
        if stat is not None and S_ISREG(stat.st_mode):
            _tag_of(found, *_version(stat))
        return found, stat

    def file_response(
        self, full_path: Any, stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """The file, or that it is had already."""
        headers = {**self._headers, "ETag": _tag_of(str(full_path), *_version(stat_result))}
        response: Response = FileResponse(full_path, status_code, headers, stat_result=stat_result)
        del response.headers["last-modified"]
        if self.is_not_modified(response.headers, Headers(scope=scope)):
            response = NotModifiedResponse(response.headers)
            response.headers.update(self._headers)  # or others would come in their place
        return response


def tag(content: bytes) -> str:
    """The `ETag` of what is made here."""
    return f'"{sha256(content).hexdigest()}"'


def _version(stat: stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_ctime_ns, stat.st_size


@lru_cache(maxsize=256)
def _tag_of(path: str, *_: int) -> str:
    with Path(path).open("rb") as file:
        return f'"{file_digest(file, "sha256").hexdigest()}"'


WEB = Path(__file__).parents[1] / "web"
PAGE = Files(directory=WEB)
