"""What the log looks like: lines of the service on standard error, with the id of the request they
are about, and a line of JSON for each request on standard output.
"""

import logging
import sys

from service.http import record
from service.http.record import iso_utc
from service.settings import Settings

_FORMAT = "%(asctime)s %(levelname)s %(name)s%(request)s: %(message)s"


class _Lines(logging.Formatter):
    """With the time as lines of requests have it: in UTC, whichever zone the machine is in."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return iso_utc(record.created)


def set_up(settings: Settings) -> None:
    """Of this process; nothing is logged to anywhere before."""
    lines = logging.StreamHandler()
    lines.addFilter(_name_request)
    lines.setFormatter(_Lines(_FORMAT))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[lines])
    record.log.propagate = False
    record.log.setLevel(logging.INFO if settings.log_requests else logging.CRITICAL)
    record.log.addHandler(logging.StreamHandler(sys.stdout))


def _name_request(line: logging.LogRecord) -> bool:
    request = record.current().id
    line.request = f" [{request}]" if request else ""
    return True
