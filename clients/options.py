"""What the verbs of `evenkeel` take, and what they make of it."""

import json
import math
import os
import shutil
import sys
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
Key = Annotated[
    str | None, typer.Option("--api-key", envvar="EVENKEEL_API_KEY", show_envvar=True, help="a key")
]
Patience = Annotated[
    float, typer.Option(metavar="SECONDS", min=0, help="how long a cut answer may be gone on with")
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
# The longest ending that fits is the format.
FORMATS = {
    ".svg": "svg", ".png": "png", ".pdf": "pdf", ".inkml": "inkml", ".json": "json",
    ".plotter.svg": "plotter-svg", ".hpgl": "hpgl", ".plt": "hpgl", ".gcode": "gcode",
    ".nc": "gcode",
}  # fmt: skip


def require_place(file: Path | None) -> None:
    """Raise `BadParameter` unless a file can be written: its content comes at the end, and would be
    lost. None is no file."""
    if file is None:
        return
    folder = Path(os.path.realpath(file)).parent  # of what a link points to
    if not folder.is_dir():
        raise typer.BadParameter(f"{file} cannot be written: there is no folder {folder}")
    if len(os.fsencode(file.name)) > (longest := os.pathconf(folder, "PC_NAME_MAX")):
        raise typer.BadParameter(f"{file} cannot be written: a name has {longest} bytes at most")
    if not (file.exists() or os.access(folder, os.W_OK | os.X_OK)):
        raise typer.BadParameter(f"{file} cannot be written: nor can anything in {folder}")


def save(file: Path, content: bytes) -> None:
    """Replace a file whole, or leave it as it was; what is no regular file, such as a pipe, is
    written to where it is. Raises `OSError`."""
    place = Path(os.path.realpath(file))  # of a pipe that is open, as /dev/stdout, it is no path
    if file.exists() and not (file.is_file() and os.access(place.parent, os.W_OK)):
        file.write_bytes(content)
        return
    temporary = place.with_name(f".evenkeel-{os.getpid()}")
    try:
        temporary.write_bytes(content)
        if file.exists():
            shutil.copymode(file, temporary)
        temporary.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        temporary.unlink(missing_ok=True)


def format_of(out: Path) -> str:
    """The format that the longest ending of a file's name stands for."""
    require_place(out)
    endings = [ending for ending in FORMATS if out.name.lower().endswith(ending)]
    if not endings:
        raise typer.BadParameter(f"{out.name} ends in none of {', '.join(FORMATS)}")
    return FORMATS[max(endings, key=len)]


def piped() -> str:
    """All of standard input as text, its line ends as they are; nothing if it is closed."""
    return "" if sys.stdin is None else _decoded("standard input", sys.stdin.buffer.read())


def found(file: Path) -> str:
    """What is in a file, or in standard input where it is called -."""
    try:
        return piped() if str(file) == "-" else _decoded(str(file), file.read_bytes())
    except OSError as error:
        raise typer.BadParameter(str(error)) from error


def _decoded(whence: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{whence} is no UTF-8: {error}") from error


def inks(ink: str) -> list[dict[str, Any] | None]:
    """What to ask a reader, for each line: of an InkML document or a list of strokes one, of a page
    as `evenkeel write -o page.json` keeps it as many as it has, None for an empty one."""
    if ink.lstrip("\ufeff \t\r\n").startswith("<"):
        return [{"inkml": ink}]
    told = parsed("INK", ink)
    try:
        if isinstance(told, dict) and "lines" in told:
            strokes = [line["strokes"] for line in told["lines"]]
            return [{"strokes": some} if some else None for some in strokes]
        return [{"strokes": told if isinstance(told, list) else told["strokes"]}]
    except (LookupError, TypeError) as error:
        raise typer.BadParameter("INK has no strokes, nor lines of them") from error


def kept(state: Path) -> str:
    """The state token in a file, without the end of its line."""
    try:
        return state.read_text("utf-8").strip()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"--state-in {state} is no token: {error}") from error
