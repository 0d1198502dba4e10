"""What the page asks for and gives away, and what the service draws for the same request."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.page.visit import Visit

_JSON = {"content-type": "application/json"}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def download(visit: Visit, kind: str) -> bytes:
    with visit.page.expect_download() as download:
        visit.press(f"#write-{kind}")
    assert download.value.suggested_filename == f"evenkeel-{visit.shown_seed('write')}.{kind}"
    content = Path(download.value.path()).read_bytes()
    visit.wait_done("write")
    return content


def requests(visit: Visit) -> list[dict[str, Any]]:
    """What the page asks to be written from here on."""
    asked: list[dict[str, Any]] = []
    visit.page.on(
        "request", lambda r: asked.append(r.post_data_json) if r.method == "POST" else None
    )
    return asked


def drawn(site: str, request: dict[str, Any]) -> str:
    """What the service draws for a request."""
    data = json.dumps({**request, "stream": False, "format": "svg"}).encode()
    with urlopen(Request(f"{site}/v1/handwriting", data, _JSON)) as answer:
        drawing: str = answer.read().decode()
        return drawing


def paths(svg: str) -> list[str]:
    return re.findall(r'<path d="([^"]+)"', svg)


def same_ink(ours: str, theirs: str) -> None:
    """Two drawings, one of which the page may have made, show the same strokes."""
    assert len(paths(ours)) == len(paths(theirs)) > 0
    for one, other in zip(paths(ours), paths(theirs), strict=True):
        assert numbers(one) == pytest.approx(numbers(other), abs=0.05)


def numbers(data: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(data)]
