"""Lines of the log name the request that caused them, and requests have lines of their own."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.http.record import Record

_ROOT = Path(__file__).parents[2]
_CODE = """
import logging
from fastapi import FastAPI
from starlette.testclient import TestClient
from service import logs
from service.http.record import Recorder
from service.metrics import Metrics
from service.settings import Settings

async def inside(scope, receive, send):
    logging.getLogger("service.inside").warning("it happened")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})

logs.set_up(Settings(log_level="warning"))
app = FastAPI()
app.state.routes = []
app.middleware_stack = Recorder(inside, Metrics())
logging.getLogger("service.outside").warning("it begins")
TestClient(app).get("/any", headers={"X-Request-Id": "mine"})
"""


@pytest.mark.parametrize("wanted", ["1", "0"])
def test_lines_carry_the_id_of_their_request(wanted: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CODE],
        cwd=_ROOT,
        env={"EVENKEEL_LOG_REQUESTS": wanted, "TZ": "Etc/GMT-12"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    outside, inside = done.stderr.splitlines()
    assert outside.endswith(" WARNING service.outside: it begins")
    assert inside.endswith(" WARNING service.inside [mine]: it happened")
    requests = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["request"] for line in requests] == (["mine"] if wanted == "1" else [])
    # All of one calendar, that of UTC, and in one notation.
    for moment in (outside.split()[0], inside.split()[0], *(line["time"] for line in requests)):
        told = datetime.fromisoformat(moment)
        assert told.utcoffset() == timedelta()
        assert abs(datetime.now(UTC) - told) < timedelta(minutes=5)


def test_every_field_of_the_line_of_a_request_is_told_and_none_that_is_gone() -> None:
    guide = (_ROOT / "docs" / "operations.md").read_text("utf-8")
    table = guide.partition("| field | what |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.+?) \|", table, re.M)
    told = [name for fields in rows for name in re.findall(r"`(\w+)`", fields)]
    assert sorted(told) == sorted(json.loads(Record("mine").line()))
