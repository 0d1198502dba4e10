"""Visits to the page without a browser, and what a service answers them."""

from pathlib import Path
from typing import Any

from contract.alphabets import ALPHABET
from tests.site.node import Json, Node

_PATIENCE_S = 60


def model(id_: str, kind: str, **more: Any) -> Json:
    """A model as the service tells of it."""
    network = {"cell": "lstm", "norm": "layer", "layers": 2, "units": 400}
    attestation = {"ok": True, "max_error": 1e-6, "bound": 2.5e-3, "steps": 4000, "detail": ""}
    known = {
        "id": id_, "kind": kind, "default": False, "ready": True, "attestation": attestation,
        "system_fingerprint": "any", "hyperparameters": network, "parameters": 1234567,
        "provenance": {"data": {"name": f"data of {id_}"}}, "precision": "float32",
        "runtime": "ort 1",
        "digest": "abc", "layer_normalizations": 9, "parity": [],
        "writes": {"characters": ALPHABET, "marks": []},
        "ink": {"units_of_size": 1.5, "units_per_line": 10},
    }  # fmt: skip
    return known | more


PEN, PENCIL = model("pen", "handwriting", default=True), model("pencil", "handwriting")
TEXT, READER = model("shakespeare", "language", default=True), model("reads", "reader")
HEAD: Json = {
    "lines": ["ho"], "width": 600, "height": 128, "color": "#123456", "stroke_width": 2,
    "thinning": 0, "seed": 3, "system_fingerprint": "any", "style": "token",
}  # fmt: skip
USAGE: Json = {"usage": {"characters": 2, "points": 9}}
INK: Json = {"points": [[20, 60, 0], [40, 70, 0], [60, 60, 1]], "line": 0, "character": 1}
WRITTEN = [HEAD, INK, {"finish_reason": "stop"}, USAGE]


def styles(*names: str, of: str = "pen") -> list[Json]:
    """Hands that are stored with a model."""
    told = {"description": "it leans", "preview": "/v1/previews/it"}
    return [{"id": name, "model": of} | told for name in names]


def serving(*models: Json, hands: list[Json] | None = None, **more: Any) -> Json:
    """What a service answers that has these models, or one of each kind."""
    models = models or (PEN, TEXT, READER)
    listed = styles("ada", "bea") if hands is None else hands
    return {
        "/v1/models": {"body": {"data": models}},
        **{f"/v1/models/{m['id']}": {"body": m} for m in models},
        "/v1/styles": {"body": {"data": listed}},
        "/v1/handwriting": {"events": WRITTEN},
        "/v1/previews/it": {"text": "<svg/>"},
    } | more


def point(type_: str, x: float, y: float, **more: Any) -> list[Any]:
    """A step of a pointer on the paper that is written on."""
    return ["pointer", "#draw-pad", f"pointer{type_}", {"clientX": x, "clientY": y, **more}]


def stroke(*points: tuple[float, float], **more: Any) -> list[list[Any]]:
    """The steps of a stroke."""
    first, *rest = points
    moves = [point("move", *place, **more) for place in rest]
    return [point("down", *first, **more), *moves, point("up", *points[-1], **more)]


class Visitor(Node):
    """A process that visits the page, one visit after the other."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "--no-warnings", "--experimental-vm-modules", "visited.mjs")

    def __call__(self, *steps: list[Any], answers: Json | None = None, **how: Any) -> list[Any]:
        """What is found by the steps of a visit, each a verb of `visited.mjs` and what it takes."""
        told = how | {"steps": steps, "answers": serving() if answers is None else answers}
        found: list[Any] = self.answer(told, _PATIENCE_S)["found"]
        return found
