"""How the verbs of `evenkeel` ask a service, and how they fail: with a line on standard error."""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn
from unicodedata import category

import httpx
import typer
from httpx_sse import SSEError

from clients.client import ABOUT_USERS, Client
from clients.errors import Refused

# What begins a line, moves a cursor, turns the direction of reading, or is half a character.
_OBEYED = ("Cc", "Cf", "Cs", "Zl", "Zp")
# What comes of looking in an answer for what it has not.
_IN_AN_ANSWER = (
    LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError,
)  # fmt: skip


@contextmanager
def asking(url: str, api_key: str | None, patience_s: float = 0) -> Iterator[Client]:
    """A client whose errors are told in plain words."""
    urls = [one.strip() for one in url.split(",") if one.strip()] or [url]
    if "@" in url and not all("://" in one for one in urls):  # of a password with a comma, perhaps
        _fail(ABOUT_USERS, 2)
    try:
        client = Client(urls, api_key, patience_s=patience_s)
    except (httpx.InvalidURL, ValueError) as error:  # of no request that can be sent
        _fail(str(error), 2)
    try:
        with client:
            yield client
    except BrokenPipeError:
        raise  # whoever read has read enough
    except SSEError:
        _fail(f"what {_shown(url)} answers is no stream of events; is Evenkeel there?")
    except httpx.TransportError as error:
        if isinstance(error.__cause__, json.JSONDecodeError):
            _fail_of_json(url)
        _fail(f"no answer from {_shown(url)}: {str(error) or type(error).__name__}")
    except (json.JSONDecodeError, UnicodeDecodeError):
        _fail_of_json(url)
    except Refused as error:
        _fail(str(error))
    except UnicodeEncodeError as error:
        if error.encoding == "utf-8":  # as the answer itself is, or half a character
            _fail_of_answer(url, error)
        letter = error.object[error.start]
        _fail(f"standard output is in {error.encoding}, which has no {letter!a}")
    except OSError as error:
        leave_output()
        _fail(str(error))
    except _IN_AN_ANSWER as error:
        _fail_of_answer(url, error)


def require_output() -> None:
    """Fail where standard output is closed: typer would print to nowhere without a word."""
    if sys.stdout is None:
        _fail("standard output is closed")


def leave_output() -> None:
    """Lead standard output nowhere, after writing to it has failed: flushed once more at the end of
    the process, it would fail again, and the exit status be 120."""
    with suppress(OSError, AttributeError):  # of one that is no file, or closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain(text: str) -> str:
    """What somebody else has told as a part of a line that no terminal obeys, with escapes such as
    `\\x1b`."""
    return "".join(repr(c)[1:-1] if category(c) in _OBEYED else c for c in text)


def tell(message: str) -> None:
    """Say something in a line on standard error."""
    typer.echo(f"evenkeel: {plain(message)}", err=True)


def _shown(url: str) -> str:
    """An address, or several, without the user and the password that may be in them."""
    return re.sub(r"//[^/,]*@", "//", url)


def _fail_of_json(url: str) -> NoReturn:
    _fail(f"what {_shown(url)} answers is no JSON; is Evenkeel there?")


def _fail_of_answer(url: str, error: Exception) -> NoReturn:
    reason = f"{type(error).__name__}: {error}"
    _fail(f"what {_shown(url)} answers is not Evenkeel's, or another version's ({reason})")


def _fail(message: str, status: int = 1) -> NoReturn:
    tell(message)
    raise typer.Exit(status)
