"""The ink that is there when the page opens, drawn by the shipped pen:

.venv/bin/python -m tests.page.opening

To be run again when the pen's weights have changed.
"""

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.service.serving import Service, running, settings

ROOT = Path(__file__).parents[2]
WEB = ROOT / "service" / "web"
FILE = WEB / "opening.svg"
_MODEL = "handwriting"
# What the form says when nobody has changed it, where the service says otherwise.
_FIELDS = {"thinning": "write-thinning", "color": "write-color"}
_PATIENCE_S = 60.0  # other work on the machine is no reason to be refused


class _Page(HTMLParser):
    """What the page has by id: attributes, and the text of the field that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: dict[str, dict[str, str | None]] = {}
        self.text = ""
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = dict(attrs).get("id") or ""
        self.attributes[self._inside] = dict(attrs)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "write-text":
            self.text += data


def request() -> dict[str, Any]:
    """What the page asks for when it opens."""
    page = _Page()
    page.feed((WEB / "index.html").read_text())
    body = {name: page.attributes[id_]["value"] for name, id_ in _FIELDS.items()}
    body["thinning"] = float(body["thinning"] or 0)
    own = json.loads(page.attributes["write-opening"]["data-request"] or "")
    return body | {"model": _MODEL, "text": page.text} | own


def drawn(service: Service) -> str:
    """The sentence as a service draws it."""
    answer = service.client.post("/v1/handwriting", json=request())
    assert answer.status_code == 200, answer.text
    return answer.text


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "artifacts" / _MODEL, Path(folder) / _MODEL)
        with running(settings(Path(folder), max_wait_s=_PATIENCE_S)) as shipped:
            FILE.write_text(drawn(shipped))
