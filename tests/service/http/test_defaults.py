"""What a request is taken to say where it says nothing, and the words that it may say, are what
docs/api.md has."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from service.http.fields import RequestBody
from service.ink.online import InkOpening
from service.ink.schemas import HandwritingRequest, StyleRequest
from service.reader.schemas import ReaderOpening, ReadRequest
from service.text.online import TextOpening
from service.text.schemas import CompletionRequest
from service.text.tokenizer import DetokenizeRequest, TokenizeRequest

_API = Path(__file__).parents[3] / "docs" / "api.md"
# What is asked, where it is told of, and of how many defaults at least.
_PLACES = [
    (CompletionRequest, "`POST /v1/completions`", 23),
    (TokenizeRequest, "Tokens", 2),
    (DetokenizeRequest, "Tokens", 1),
    (HandwritingRequest, "`POST /v1/handwriting`", 20),
    (StyleRequest, "`/v1/styles`", 0),
    (ReadRequest, "`POST /v1/read`", 4),
    (TextOpening, "`/v1/online`", 2),
    (InkOpening, "`/v1/online`", 5),
    (ReaderOpening, "`/v1/online`", 3),
]
# A part of another one, and messages of a session, which say one thing each.
_OF_OTHERS = {"StreamOptions", "PageSize", "TextSaid", "InkSaid", "ReaderSaid", "StateAsked"}
_WORDS = {"none": None, "true": True, "false": False}
_KNOWN = re.compile(r'none|true|false|[\d.]+|""|`[^`]+`')


def _section(part: str) -> str:
    return _API.read_text().split(f"\n## {part}\n")[1].split("\n## ")[0]


def _defaults(part: str) -> dict[str, Any]:
    """Of the fields in the tables of a part; those that the document has in words are left out."""
    told: dict[str, Any] = {}
    for fields, given in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.+?) \|", _section(part), re.M):
        names = re.findall(r"\w+", fields)
        values = given.split(", ") if "," in given else [given] * len(names)
        if len(values) == len(names) and all(map(_KNOWN.fullmatch, values)):
            told |= dict(zip(names, map(_value, values), strict=True))
    return told


def _value(given: str) -> Any:
    if given in _WORDS:
        return _WORDS[given]
    quoted = given.strip("`")
    return json.loads(quoted) if re.match(r'[\d"]', quoted) else quoted


def _words(annotation: Any) -> set[Any]:
    """Those among which a field's value is chosen."""
    inside = get_args(annotation)
    if get_origin(annotation) is Literal:
        return {word for word in inside if isinstance(word, str) and word}
    return set().union(*map(_words, inside))


def _requests(kind: type[BaseModel] = RequestBody) -> Iterator[str]:
    """The names of all that the service takes; of classes that others are made of, of those."""
    below = [each for each in kind.__subclasses__() if each.__module__.startswith("service.")]
    for each in below:
        yield from _requests(each)
    if not below:
        yield kind.__name__


def test_what_every_request_is_taken_to_say_is_compared() -> None:
    assert set(_requests()) - _OF_OTHERS == {model.__name__ for model, *_ in _PLACES}


@pytest.mark.parametrize(("model", "part"), [place[:2] for place in _PLACES])
def test_every_word_that_a_field_takes_is_told(model: type[BaseModel], part: str) -> None:
    words = set().union(*(_words(field.annotation) for field in model.model_fields.values()))
    assert words <= set(re.findall(r"`([^`]+)`", _section(part)))


@pytest.mark.parametrize(
    ("model", "part", "least"), _PLACES, ids=lambda value: getattr(value, "__name__", "")
)
def test_what_is_left_out_is_what_the_document_says(
    model: type[BaseModel], part: str, least: int
) -> None:
    fields = model.model_fields
    told = {name: value for name, value in _defaults(part).items() if name in fields}
    assert len(told) >= least
    # SVG is what an answer in one piece is; a stream of points has no format.
    told.pop("format", None)
    assert {name: fields[name].default for name in told} == told
