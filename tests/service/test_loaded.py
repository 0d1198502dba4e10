"""All that a request needs is loaded when the service is ready: the first request waits for no
module, and where no file can be opened just then it is answered as any other."""

import json
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_ASKED = """
import json, sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit
from websockets.sync.client import connect
from tests.service.serving import listening, settings

def ask(path, status=200, **body):
    connection = HTTPConnection(where, timeout=60)
    head = {"content-type": "application/json"}
    connection.request("POST" if body else "GET", path, json.dumps(body), head)
    answer = connection.getresponse()
    content = answer.read().decode(errors="replace")
    assert answer.status == status, content
    connection.close()
    return content

with listening(settings(Path(sys.argv[1]))) as (url, _):
    where = urlsplit(url).netloc
    ask("/readyz")
    before = set(sys.modules)
    for path in ("/", "/static/page.js", "/docs", "/openapi.json", "/asyncapi.json"):
        ask(path)
    ask("/v1/models")
    ask("/metrics")
    ask("/tokenize", model="letters", prompt="It")
    drawn = {"temperature": 1, "top_p": 0.9, "logprobs": 2, "stop": ["~"]}
    for stream in (False, True):
        ask("/v1/completions", model="letters", max_tokens=9, seed=1, stream=stream, **drawn)
    for form in ("svg", "json", "png", "pdf", "hpgl", "gcode", "plotter-svg", "inkml"):
        ink = ask("/v1/handwriting", text="It is so\\nin it", seed=1, format=form)
    ask("/v1/read", inkml=ink)
    ask("/v1/completions", 400, model="letters", prompt={}, max_tokens=0)
    for name in ("letters", "scrawl", "squint"):
        with connect(f"ws://{where}/v1/online") as socket:
            socket.send(json.dumps({"model": name}))
            assert json.loads(socket.recv())["model"] == name
    print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_no_request_loads_a_module(inks: Path) -> None:
    """The first draw loaded one of numpy's: where there was no free descriptor it failed, and after
    three of these the model was served no more."""
    command = [sys.executable, "-c", _ASKED, str(inks)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    *_, loaded = done.stdout.splitlines()
    assert json.loads(loaded) == []
