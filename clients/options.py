"""The options that verbs of `evenkeel` share, and values that no request can have."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

_ARGUMENTS = {"prompt", "text", "names"}  # which have no option


def parsed(option: str, text: str | bytes) -> Any:
    """The value of an option that is JSON, as text or as bytes, whose encoding is found out. Raises
    `BadParameter`, also for numbers that JSON does not have."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_number)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{option} is no JSON: {error}") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number there")


def _number(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


def require_sayable(asked: Mapping[str, Any]) -> None:
    """Raise `BadParameter` for what no request in JSON can say: a number that is not finite, or
    text with bytes that the terminal's encoding has no characters for."""
    for name, value in asked.items():
        option = name if name in _ARGUMENTS else f"--{name.replace('_', '-')}"
        if isinstance(value, float) and not math.isfinite(value):
            raise typer.BadParameter(f"{option} is {value}, which is no number")
        if any("\ud800" <= letter <= "\udfff" for text in _texts(value) for letter in text):
            raise typer.BadParameter(f"{option} is no text in the encoding of this terminal")


def _texts(value: Any) -> Iterator[str]:
    """Every string in a value, however deep in lists and objects, the keys of those included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | Mapping):
        for part in (*value, *(value.values() if isinstance(value, Mapping) else ())):
            yield from _texts(part)


def _sheet(page: str) -> str | dict[str, float]:
    """A size by its name, or as it is asked for in mm."""
    if "x" not in page:
        return page
    try:
        width, height = map(_number, page.split("x"))
    except ValueError as error:
        raise typer.BadParameter(f"--page {page} is no WIDTHxHEIGHT in mm") from error
    return {"width": width, "height": height}


def _hand(style: str) -> Any:
    """A hand by its name or token, or the strokes and their text that are in a file, which has a
    folder or an ending: a hand may have the name of any other."""
    if not (style.endswith(".json") or Path(style).name != style):
        return style
    try:
        return parsed("--style", Path(style).read_bytes())
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"--style: {error}") from error


Url = Annotated[
    str,
    typer.Option(envvar="EVENKEEL_URL", help="where it is; several replicas are parted by commas"),
]
Key = Annotated[str | None, typer.Option("--api-key", envvar="EVENKEEL_API_KEY", help="a key")]
Patience = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0, help="without a sign of life, after which it fails"),
]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", help="its name; left out, the service's default or the first"),
]
Seed = Annotated[int | None, typer.Option(help="the same seed gives the same answer")]
Style = Annotated[
    Any,
    typer.Option(
        parser=_hand,
        metavar="TEXT",
        help="a stored hand, or a JSON file with strokes and their text",
    ),
]
BestOf = Annotated[
    int | None, typer.Option(help="draws of each line, the most legible is kept; 1 to 16")
]
BestBy = Annotated[
    str | None, typer.Option(help="with --best-of, what is chosen: each `line`, or each `word`")
]
Judge = Annotated[
    str | None, typer.Option(help="with --best-of, the reader that chooses; left out, the only one")
]
Thinning = Annotated[
    float | None, typer.Option(help="of the stroke where the pen is fast, 0 to 0.9")
]
Wander = Annotated[float | None, typer.Option(help="of the baseline, in line heights, 0 to 0.2")]
Sheet = Annotated[
    Any,
    typer.Option(
        parser=_sheet, metavar="TEXT", help="sheets of a4, a5, letter or WIDTHxHEIGHT in mm"
    ),
]
Transparent = Annotated[bool, typer.Option("--transparent", help="a PNG without ground")]
FILE = {"exists": True, "dir_okay": False}
KEEP = {"dir_okay": False, "writable": True}  # looked at before anything is asked for
HERE = "http://127.0.0.1:8000"
