"""What is in the image and how it starts; and what Docker asks it: whether its own service is
ready, wherever that listens."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_INSTRUCTIONS = (_ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "")
_STAGES = re.split(r"^FROM ", _INSTRUCTIONS, flags=re.M)[1:]
# Of the last stage, which is the service.
_ENVIRONMENT = dict(re.findall(r"(\w+)=(\S+)", "".join(re.findall(r"^ENV .*", _STAGES[-1], re.M))))


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _listening(host: str) -> Iterator[int]:
    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def server_bind(self) -> None:
            if ":" in host:  # as the service does
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            super().server_bind()

    try:
        server = Server((host, 0), _Ready)
    except OSError as why:
        pytest.skip(f"nobody can listen on {host}: {why}")
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _asks(host: str, port: int) -> int:
    """The exit status of the check as the Dockerfile has it."""
    (listed,) = re.findall(r"^HEALTHCHECK .*? CMD (\[.*\])$", _INSTRUCTIONS, re.M)
    program, *rest = json.loads(listed)
    assert program == "python"
    environment = os.environ | {"EVENKEEL_HOST": host, "EVENKEEL_PORT": str(port)}
    environment |= {"http_proxy": "http://127.0.0.1:9", "no_proxy": ""}  # nobody listens there
    run = [sys.executable, *rest]
    return subprocess.run(run, env=environment, capture_output=True).returncode


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "::", "::1"])
def test_the_check_of_the_image_finds_its_service_wherever_it_listens(host: str) -> None:
    with _listening(host) as port:
        assert _asks(host, port) == 0
    assert _asks(host, port) != 0


def test_the_image_has_what_the_service_imports_whatever_the_umask_of_the_checkout() -> None:
    copied = re.findall(r"^COPY (\S+) (\w+) \2$", _STAGES[-1], re.M)
    needed, found = {"service"}, {"artifacts"}
    while needed - found:
        found |= (now := needed - found)
        for source in (path for folder in now for path in (_ROOT / folder).rglob("*.py")):
            imported = re.findall(r"^(?:from|import) (\w+)", source.read_text("utf-8"), re.M)
            needed |= {name for name in imported if (_ROOT / name / "__init__.py").is_file()}
    assert sorted(copied) == [("--chmod=755", folder) for folder in sorted(found)]


def test_what_an_image_is_for_can_be_read_by_its_user_whatever_the_umask_of_the_checkout() -> None:
    copied = [
        told for stage in _STAGES for told in re.findall(r"^COPY (?!--from)(.*)", stage, re.M)
    ]
    # What is only built with is read by root.
    built_with = [told for told in copied if not told.startswith("--chmod=755 ")]
    assert set(built_with) == {"requirements requirements"}


def test_what_an_image_is_made_of_is_sent_to_whoever_makes_it() -> None:
    sent = set((_ROOT / ".dockerignore").read_text("utf-8").splitlines())
    for stage in _STAGES:
        for told in re.findall(r"^COPY (?!--from)(?:--chmod=\d+ )?(.*) \S+$", stage, re.M):
            assert {f"!{source}" for source in told.split()} <= sent


def test_a_load_begins_by_itself_and_ends() -> None:
    """Locust otherwise waits for somebody to press a button on its page."""
    (listed,) = re.findall(r"^ENTRYPOINT (\[.*\])$", _STAGES[1], re.M)
    program, *options = json.loads(listed)
    assert (program, "--headless" in options) == ("locust", True)
    file = options[options.index("--locustfile") + 1]
    assert re.findall(rf"^COPY --chmod=755 \S*\b{re.escape(file)} \./$", _STAGES[1], re.M)


def test_an_image_of_which_nobody_says_more_is_that_of_a_cpu() -> None:
    """As the guides build it for ARM; there is no onnxruntime for CUDA there."""
    fleet = (_ROOT / "deploy" / "kubernetes" / "base" / "kustomization.yaml").read_text("utf-8")
    (tag,) = re.findall(r"newTag: (\w+)", fleet)
    assert re.findall(r"^ARG ORT_EXTRA=(\w+)$", _STAGES[0], re.M) == [tag] == ["cpu"]


def test_the_image_tells_the_terms_of_what_is_in_it() -> None:
    """Its licence, and the notices of the data that weights were trained on."""
    (told,) = re.findall(r"^COPY --chmod=755 (.*) \./$", _STAGES[-1], re.M)
    names = {str(p.relative_to(_ROOT)) for pattern in told.split() for p in _ROOT.glob(pattern)}
    assert names == {"LICENSE", "docs/model-card-handwriting.md", "docs/model-card-reader.md"}
    sent = (_ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert {f"!{pattern}" for pattern in told.split()} <= set(sent)


def test_who_starts_what_an_image_is_for_is_not_root() -> None:
    started = [stage for stage in _STAGES if re.search(r"^(CMD|ENTRYPOINT) ", stage, re.M)]
    assert len(started) == 2
    for stage in started:
        assert re.findall(r"^USER (.*)$", stage, re.M) == ["10001:10001"]


def test_the_image_listens_where_compose_publishes_it_and_reports_to_nobody() -> None:
    port = _ENVIRONMENT["EVENKEEL_PORT"]
    assert re.findall(r"^EXPOSE (.*)$", _STAGES[-1], re.M) == [port]
    assert f':{port}}}:{port}"' in (_ROOT / "docker-compose.yml").read_text("utf-8")
    assert _ENVIRONMENT["EVENKEEL_HOST"] == "0.0.0.0"  # of a container
    assert _ENVIRONMENT["ORT_DISABLE_TELEMETRY"] == "1"


def test_what_is_said_in_a_container_is_heard_at_once() -> None:
    """Python keeps it back where standard output is no terminal; what is killed loses it."""
    for stage in _STAGES[1:]:
        assert re.findall(r"PYTHONUNBUFFERED=(\S+)", stage) == ["1"]


def test_the_check_of_the_image_ends_before_docker_ends_it() -> None:
    """Who is ended by Docker leaves its connection to the service as it stands."""
    ((limit_s, own_s),) = re.findall(r"--timeout=(\d+)s.*, timeout=(\d+)\)", _INSTRUCTIONS)
    assert int(own_s) < int(limit_s)
    (start_s,) = re.findall(r"--start-period=(\d+)s", _INSTRUCTIONS)
    assert int(start_s) >= 60  # as Kubernetes gives it to start


def test_the_bill_of_materials_is_that_of_what_is_installed_for_the_service() -> None:
    """And not of the tool that writes it."""
    assert re.search(r"-o (/opt/venv)/sbom\.cdx\.json \1/bin/python$", _STAGES[0], re.M)


def test_what_is_started_is_started_by_the_python_that_has_its_packages() -> None:
    for stage in _STAGES[1:]:
        assert re.search(r"/opt/venv", stage.partition("ENV ")[0])
        assert re.findall(r"^ENV .*\bPATH=(\S+)", stage, re.M) == ["/opt/venv/bin:$PATH"]
