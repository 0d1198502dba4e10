"""Files and standard input, as the verbs of `evenkeel` read and write them."""

import os
import re
import secrets
import shutil
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from clients.options import parsed

# The longest ending that fits is the format.
FORMATS = {
    ".svg": "svg", ".png": "png", ".pdf": "pdf", ".inkml": "inkml", ".json": "json",
    ".plotter.svg": "plotter-svg", ".hpgl": "hpgl", ".plt": "hpgl", ".gcode": "gcode",
    ".nc": "gcode",
}  # fmt: skip
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([\w.-]+)""")


def format_of(out: Path) -> str:
    """The format that the longest ending of a file's name stands for."""
    require_place(out)
    endings = [ending for ending in FORMATS if out.name.lower().endswith(ending)]
    if not endings:
        raise typer.BadParameter(f"{out.name} ends in none of {', '.join(FORMATS)}")
    return FORMATS[max(endings, key=len)]


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
    """Replace a file whole, or leave it as it was; what is no regular file, such as a pipe, and
    a file in a folder that takes no other is written to where it is. Raises `OSError`."""
    place = Path(os.path.realpath(file))  # of a pipe that is open, as /dev/stdout, it is no path
    if file.exists() and not (file.is_file() and os.access(place.parent, os.W_OK)):
        file.write_bytes(content)
        return
    # Nobody else can have that name: of processes, those of two containers may have one number.
    temporary = place.with_name(f".evenkeel-{secrets.token_hex(8)}")
    try:
        # Until it is whole, nobody reads it who might not read the old one.
        temporary.touch(0o600 if file.exists() else 0o666, exist_ok=False)
        temporary.write_bytes(content)
        if file.exists():
            with suppress(OSError):  # of a file system that has no permissions, in whatever words
                shutil.copymode(file, temporary)
        temporary.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        temporary.unlink(missing_ok=True)


def piped() -> str:
    """All of standard input as text, its line ends as they are; nothing if it is closed."""
    return _decoded("standard input", _of_pipe())


def found(file: Path) -> str:
    """What is in a file of ink, or in standard input where it is called -."""
    of_pipe = str(file) == "-"
    try:
        content = _of_pipe() if of_pipe else file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(str(error)) from error
    with suppress(LookupError, UnicodeError):  # of a name of none, or of another than it has
        return content.decode(_encoding(content))
    return _decoded("standard input" if of_pipe else str(file), content)


def _of_pipe() -> bytes:
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


def _encoding(document: bytes) -> str:
    """What XML says of its own, if it can be so: .NET says UTF-16 of what it writes in UTF-8."""
    if document.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    if told := _DECLARED.match(document):
        name = told[1].decode()
        if told[0].decode(name, "replace") == told[0].decode():
            return name
    return "utf-8"


def _decoded(whence: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{whence} is no UTF-8: {error}") from error


def inks(ink: str, *, ruled: bool) -> list[dict[str, Any] | None]:
    """What to ask a reader, for each line: of an InkML document or a list of strokes one, of a page
    as `evenkeel write -o page.json` keeps it as many as it has, None for an empty one, and for a
    mere point, which no reader takes unless its line is `ruled`."""
    if ink.lstrip("\ufeff \t\r\n").startswith("<"):
        return [{"inkml": ink}]
    told = parsed("INK", ink)
    try:
        if isinstance(told, dict) and "lines" in told:
            least = 1 if ruled else 2  # places that differ
            lines = (line["strokes"] for line in told["lines"])
            return [
                {"strokes": strokes}
                if len({tuple(p) for s in strokes for p in s}) >= least
                else None
                for strokes in lines
            ]
        return [{"strokes": told if isinstance(told, list) else told["strokes"]}]
    except (LookupError, TypeError) as error:
        raise typer.BadParameter("INK has no strokes, nor lines of them") from error


def kept(state: Path) -> str:
    """The state token in a file, without the end of its line."""
    try:
        return state.read_text("utf-8").strip()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"--state-in {state} is no token: {error}") from error
