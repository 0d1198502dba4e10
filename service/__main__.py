"""`python -m service`: serve every model in the artifacts folder. Settings are environment
variables; `python -m service --help` lists them. `python -m service keys new NAME` makes an API
key."""
# ruff: noqa: E402

import argparse
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

_hang_ups: list[int] = []  # that came while it loads
# Before anything takes its time to load: process 1 of a container would not hear of them at all. At
# once, as nothing is to be ended yet: an exception within an import may come out as another.
if __name__ == "__main__":
    for _number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(_number, lambda *_: os._exit(0))
    signal.signal(signal.SIGHUP, lambda number, _: _hang_ups.append(number))
# The event loop's own files would take the numbers of standard ones that are closed, and to close
# such a number aborts.
for _standard in (0, 1, 2):
    try:
        os.fstat(_standard)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # takes the least that is free

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from service import logs
from service.app import create_alone
from service.artifact import ArtifactError
from service.errors import rule_of
from service.http.guard import is_loopback
from service.http.keys import BadKeys, new_key
from service.server import Server
from service.settings import SECRETS, Settings, misspelt, named

log = logging.getLogger("service")


def main() -> int:
    """Serve until told to stop; 2 where a setting is bad, nothing can be served, or not there."""
    arguments = _parser().parse_args()
    if arguments.verb == "keys":
        return _new_key(arguments)
    try:
        settings = Settings()
    except ValidationError as error:
        return _refused(*map(_broken, error.errors()))
    except SettingsError as error:
        return _refused(f"{SECRETS} cannot be read: {error}: {error.__cause__}")
    if not (settings.keys or settings.open or is_loopback(settings.host)):
        return _refused(
            f"EVENKEEL_HOST is {settings.host!r}, which strangers may reach: set "
            "EVENKEEL_KEYS to a file of API keys, or EVENKEEL_OPEN=1 to serve anybody"
        )
    logs.set_up(settings)
    for told in misspelt(named()):
        log.warning(told)
    try:
        app = create_alone(settings)
    except BadKeys as error:
        return _refused(f"EVENKEEL_KEYS: {error}")
    except ArtifactError as error:
        return _refused(error)
    try:
        server = Server(app, settings)
        app.state.models.start()  # here: where there is no thread for one, that is told in a line
    except (OSError, ArtifactError) as error:
        return _refused(error)
    # Sent by whoever expects a reload, and when a terminal closes: no reason to end.
    signal.signal(signal.SIGHUP, lambda *_: app.state.watch.ask())
    if _hang_ups:  # the artifacts may have been read before
        app.state.watch.ask()
    with suppress(SystemExit):  # of uvicorn, which has logged what is wrong with the place
        server.run()
    if not server.started:
        place = f"EVENKEEL_HOST {settings.host!r} and EVENKEEL_PORT {settings.port}"
        return _refused(f"nothing can be served at {place}")
    return 0


def _refused(*why: object) -> int:
    """Say why nothing is done; the exit status of that."""
    for told in why:
        print(f"error: {told}", file=sys.stderr)
    return 2


def _broken(problem: ErrorDetails) -> str:
    """The rule that a setting breaks, and its value, if that is no secret."""
    name = f"EVENKEEL_{str(problem['loc'][0]).upper()}"
    secret = problem["loc"][0] in ("state_key", "state_key_fallbacks")
    given = "" if secret else f" is {problem['input']!r}"
    return f"{name}{given}: {rule_of(problem)}"


def _leave(code: int) -> NoReturn:
    """End the process. The interpreter would tear an engine that is still in a run of onnxruntime
    out of it, which aborts, and wait for a drawing that nobody gets."""
    if any(thread.name.startswith(("engine-", "aside")) for thread in threading.enumerate()):
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # as of a file that was closed
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m service",
        description=__doc__,
        epilog=_settings_table(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb")
    keys = verbs.add_parser("keys", help="make API keys").add_subparsers(required=True)
    new = keys.add_parser("new", help="print a new key, and write what it is checked by to a file")
    new.add_argument("name", help="whose it is, in the log")
    new.add_argument("--file", type=Path, default=Path("keys.toml"), help="[keys.toml]")
    new.add_argument("--admin", action="store_true", help="may load and unload models")
    new.add_argument("--concurrency", type=int, help="requests under way at once")
    new.add_argument("--bytes-per-minute", type=int, help="bytes read and written")
    return parser


def _new_key(arguments: argparse.Namespace) -> int:
    given = {name: value for name, value in vars(arguments).items() if name not in ("verb", "file")}
    try:
        new_key(arguments.file, **given, show=_show)
    except BadKeys as error:
        return _refused(error)
    return 0


def _show(key: str) -> None:
    """Print it. Raises `BadKeys` where nobody would see it."""
    if sys.stdout is None:
        raise BadKeys("standard output is closed")
    try:
        print(key, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed again
        raise BadKeys(f"standard output: {error.strerror}") from None


def _settings_table() -> str:
    lines = ["environment variables:"]
    for name, info in Settings.model_fields.items():
        lines.append(f"  EVENKEEL_{name.upper():19} {info.description} [{info.default}]")
    return "\n".join(lines)


if __name__ == "__main__":
    _leave(main())
