"""What `make` does by itself: of a copy of the Makefile, with something in the place of Python."""

import os
import shutil
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
# As `export build` does, it takes no folder that is there and is no artifact.
_BUILDS = """\
test ! -e artifacts/quickstart || exit 1
mkdir -p artifacts/quickstart && touch artifacts/quickstart/manifest.json
"""


def _make(folder: Path, target: str, python: str) -> int:
    """The exit status of make, where a script stands in the place of Python."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(_ROOT / name, folder)
    program = folder / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{python}")
    program.chmod(0o755)
    (folder / ".venv" / ".stamp").touch()
    # What make says of it is what counts, and not what this process was started with.
    outside = {key: value for key, value in os.environ.items() if key != "ORT_DISABLE_TELEMETRY"}
    made = subprocess.run(["make", target], cwd=folder, env=outside, capture_output=True)
    return made.returncode


def test_what_a_build_before_left_behind_does_not_stop_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "artifacts" / "quickstart"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_text("of a build that was stopped before it was proved")
    assert _make(tmp_path, "artifacts/quickstart/manifest.json", _BUILDS) == 0
    assert [path.name for path in folder.iterdir()] == ["manifest.json"]


def test_a_build_that_failed_leaves_nothing_that_would_be_served(tmp_path: Path) -> None:
    assert _make(tmp_path, "artifacts/quickstart/manifest.json", f"{_BUILDS}exit 1\n") != 0
    assert not (tmp_path / "artifacts" / "quickstart" / "manifest.json").exists()


@pytest.mark.parametrize(("status", "kept"), [(1, False), (130, True)])
def test_a_build_that_was_red_trains_anew_and_one_that_was_interrupted_goes_on(
    tmp_path: Path, status: int, kept: bool
) -> None:
    run = tmp_path / "runs" / "quickstart"
    run.mkdir(parents=True)
    assert _make(tmp_path, "artifacts/quickstart/manifest.json", f"{_BUILDS}exit {status}\n") != 0
    assert run.exists() == kept


def test_one_model_that_differs_is_a_failure_of_all(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "artifacts" / name).mkdir(parents=True)
    assert _make(tmp_path, "parity", 'case "$*" in *artifacts/b/*) exit 1; esac\n') != 0


def test_a_comparison_is_full_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "artifacts" / "a").mkdir(parents=True)
    for target in ("parity", "parity-full"):
        folder = tmp_path / target
        shutil.copytree(tmp_path / "artifacts", folder / "artifacts")
        assert _make(folder, target, f'echo "$*" > {folder}/asked\n') == 0
        asked = (folder / "asked").read_text().split()
        assert asked == [
            *("-m", "export", "verify"),
            *(["--full"] if target == "parity-full" else []),
            "artifacts/a/",
        ]


def test_what_make_starts_reports_to_nobody(tmp_path: Path) -> None:
    assert _make(tmp_path, "report", '[ "$ORT_DISABLE_TELEMETRY" = 1 ]\n') == 0


def test_a_check_formats_lints_and_types(tmp_path: Path) -> None:
    assert _make(tmp_path, "check", f'echo "$*" >> {tmp_path}/asked\n') == 0
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["-m ruff format --check", "-m ruff check", "-m mypy"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("bench-all SECTIONS=http", ["bench --all --sections http"]),
        ("overload SECONDS=7", ["tests.reliability overload --seconds 7"]),
        (
            "soak MINUTES=9 SECONDS=7",
            ["tests.reliability aborts", "tests.reliability soak --minutes 9"],
        ),
        ("ray-check", ["tests.scale ray", "EVENKEEL_THROUGH=ray .venv/bin/python -m pytest"]),
        (
            "gpu-tests",
            [
                *("bench.gpu\n", "bench.gpu_step\n", "bench.gpu_http\n", "bench.gpu_training\n"),
                "EVENKEEL_PROVIDER=cuda .venv-gpu/bin/python -m pytest tests/service",
            ],
        ),
        ("audit", ["pip_audit --strict --disable-pip --require-hashes"]),
        ("locks", ["--generate-hashes", "--constraints constraints.txt"]),
        ("tests WORKERS=3", ["pytest -n 3 --dist loadfile"]),
        ("lab-test", ["EVENKEEL_LONG=1 .venv/bin/python -m pytest"]),
        ("mutations IDS=one", ["tests.mutations one"]),
        ("legibility PENS=pens.npz", ["lab legibility --pens pens.npz"]),
        ("page-check SCREENS=docs", ["pytest tests/page --screens docs"]),
        ("site-check SCREENS=docs", ["pytest tests/site/page --record --pictures docs"]),
        (
            "fuzz EXAMPLES=3 INPUTS=5 ARTIFACTS=7 STORIES=9",
            [
                "EVENKEEL_FUZZ=3 EVENKEEL_FUZZ_INPUTS=5 EVENKEEL_FUZZ_ARTIFACTS=7",
                "EVENKEEL_FUZZ_MACHINE=9",
            ],
        ),
        ("ray REPLICAS=2 CPUS=3", ["deploy/ray_serve.py --replicas 2 --cpus 3"]),
        ("plotter-check", ["pytest tests/service/ink/test_vpype.py"]),
        (
            "build/vpype-venv/.stamp -W requirements/vpype.txt",
            ["install --no-compile --require-hashes -r requirements/vpype.txt"],
        ),
        # By the lock file, and nothing of a package is run.
        ("build/npm/.stamp -W site/package.json", ["npm ci --ignore-scripts"]),
    ],
)
def test_a_target_is_what_it_is_called_by_with_what_it_is_told(asked: str, told: list[str]) -> None:
    look = subprocess.run(
        ["make", "-n", *asked.split()], cwd=_ROOT, check=True, capture_output=True, text=True
    )
    assert [part for part in told if part not in look.stdout] == []


@pytest.mark.parametrize("red", ["ruff format", "ruff check", "mypy", "pytest"])
def test_tests_are_red_where_lint_types_or_a_test_is(tmp_path: Path, red: str) -> None:
    assert _make(tmp_path, "test", f'case "$*" in *"{red}"*) exit 1; esac\n') != 0


def test_a_model_that_is_there_is_not_trained_anew_where_packages_have_changed(
    tmp_path: Path,
) -> None:
    manifest = tmp_path / "artifacts" / "quickstart" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    os.utime(manifest, (0, 0))  # older than what stands for the packages
    target = "artifacts/quickstart/manifest.json"
    assert _make(tmp_path, target, f"touch {tmp_path}/asked\n") == 0
    assert manifest.exists()
    assert not (tmp_path / "asked").exists()


def test_what_is_cleaned_can_be_made_again_and_models_and_runs_stay(tmp_path: Path) -> None:
    kept = [tmp_path / "artifacts" / "mine" / "manifest.json", tmp_path / "runs" / "mine" / "kept"]
    made = [tmp_path / "build" / "site" / "index.html", tmp_path / "lab" / "__pycache__" / "x.pyc"]
    for path in (*kept, *made):
        path.parent.mkdir(parents=True)
        path.touch()
    assert _make(tmp_path, "clean", "") == 0
    assert [path for path in kept if not path.exists()] == []
    assert [path for path in (*made, tmp_path / ".venv") if path.exists()] == []


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
@pytest.mark.parametrize("folder", [".venv", ".venv-gpu", "build/ray-venv"])
def test_packages_are_installed_anew_where_what_names_them_has_changed(
    tmp_path: Path, folder: str, changed: str
) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(_ROOT / name, tmp_path)
    stamp = tmp_path / folder / ".stamp"
    stamp.parent.mkdir(parents=True)
    stamp.touch()
    look = ["make", "-q", f"{folder}/.stamp"]
    assert subprocess.run(look, cwd=tmp_path).returncode == 0
    assert subprocess.run([*look, "-W", changed], cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("target", ["audit", "locks"])
def test_what_goes_wrong_with_the_packages_of_one_image_is_a_failure_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """And where nobody can be asked for advisories an audit is skipped."""
    shutil.copytree(_ROOT / "requirements", tmp_path / "requirements")
    curl = tmp_path / "curl"
    curl.write_text("#!/bin/sh\n")
    curl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    bad = 'case "$*" in *requirements/gpu.lock*) exit 1; esac\n'
    assert _make(tmp_path, target, bad) != 0
    shutil.rmtree(tmp_path / ".venv")
    curl.write_text("#!/bin/sh\nexit 7\n")
    assert (_make(tmp_path, target, bad) == 0) is (target == "audit")


def test_all_tests_are_those_that_take_long_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVENKEEL_LONG", raising=False)
    for target, long in (("test", ""), ("test-all", "1")):
        folder = tmp_path / target
        folder.mkdir()
        told = f'case "$*" in *pytest*) echo "$EVENKEEL_LONG" > {folder}/asked;; esac\n'
        assert _make(folder, target, told) == 0
        assert (folder / "asked").read_text().strip() == long


def _docker(folder: Path, script: str) -> dict[str, str]:
    """The Makefile in a folder, and the environment in which `docker` is a script."""
    shutil.copy(_ROOT / "Makefile", folder)
    docker = folder / "docker"
    docker.write_text(f"#!/bin/sh\n{script}")
    docker.chmod(0o755)
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_look_at_what_would_be_done_starts_no_container(tmp_path: Path) -> None:
    """`make -n` runs a line that says how to call make, with all that stands beside it."""
    environment = _docker(tmp_path, f"touch {tmp_path}/started\n")
    look = ["make", "-n", "docker-check"]
    told = subprocess.run(
        look, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert "docker compose up --build --wait" in told.stdout
    assert not (tmp_path / "started").exists()


def test_a_check_of_the_image_leaves_a_service_that_runs_alone(tmp_path: Path) -> None:
    """What it starts and takes down is a project of its own."""
    told = f'echo "$COMPOSE_PROJECT_NAME $2" >> {tmp_path}/told; [ "$2" != up ]\n'
    environment = _docker(tmp_path, told)
    done = subprocess.run(["make", "docker-check"], cwd=tmp_path, env=environment)
    assert done.returncode != 0  # nothing came up
    asked = (tmp_path / "told").read_text().splitlines()
    assert asked == [f"evenkeel-check {what}" for what in ("up", "logs", "down")]


@pytest.mark.parametrize(
    ("last", "state", "well"),
    [
        (b"data: [DONE]\n\n", "0 false", True),
        (b"", "0 false", False),
        (b"data: [DONE]\n\n", "137 false", False),
        (b"data: [DONE]\n\n", "0 true", False),
    ],
    ids=["well", "cut short", "killed", "out of memory"],
)
def test_a_container_is_stopped_while_it_answers(
    tmp_path: Path, last: bytes, state: str, well: bool
) -> None:
    """Its first byte is there by then, and its last comes after."""
    stopped, early = tmp_path / "stopped", []

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            time.sleep(0.3)
            early.append(stopped.exists())
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'data: {"text": "O"}\n\n')
            limit_s = time.monotonic() + 10
            while not stopped.exists() and time.monotonic() < limit_s:
                time.sleep(0.02)
            self.wfile.write(last if stopped.exists() else b"")

        def log_message(self, *_: object) -> None:
            pass

    (tmp_path / "tests" / "deploy").mkdir(parents=True)
    (tmp_path / "tests" / "deploy" / "inside.py").touch()
    told = f'case "$*" in *stop*) touch {stopped};; inspect*) echo "{state}";; esac\n'
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        url = f"URL=http://127.0.0.1:{server.server_address[1]}"
        drain = ["make", "docker-drain", url]
        done = subprocess.run(drain, cwd=tmp_path, env=_docker(tmp_path, told), timeout=60)
        server.shutdown()
        thread.join()
    assert early == [False]
    assert (done.returncode == 0) is well


_TEXT, _INK = "/v1/completions", "/v1/handwriting"
_WELL = {_TEXT: '{"text": "O"}', _INK: '<svg><path d="M1,2"/></svg>', "/health": '{"threads": 2}'}


@pytest.mark.parametrize(
    ("change", "cpus", "well"),
    [
        ({}, "0", True),
        ({}, "2.0", True),
        ({}, "1", False),
        ({"/health": '{"threads": 1}, {"threads": 2}'}, "1", False),
        ({"/health": "{}"}, "2", False),
        ({_TEXT: '{"text": ""}'}, "0", False),
        ({_TEXT: ""}, "0", False),  # a 503
        ({_INK: "<svg></svg>"}, "0", False),
        ({_INK: ""}, "0", False),
    ],
    ids=str,
)
def test_a_probe_fails_where_a_service_does(
    tmp_path: Path, change: dict[str, str], cpus: str, well: bool
) -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told = (_WELL | change)[self.path] or _WELL[self.path]
            self.send_response(200 if (_WELL | change)[self.path] else 503)
            self.end_headers()
            self.wfile.write(told.encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    shutil.copy(_ROOT / "Makefile", tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        url = f"URL=http://127.0.0.1:{server.server_address[1]}"
        environment = os.environ | {"EVENKEEL_CPUS": cpus}
        probe = ["make", "docker-probe", url]
        done = subprocess.run(probe, cwd=tmp_path, env=environment, capture_output=True, timeout=60)
        server.shutdown()
        thread.join()
    assert (done.returncode == 0) is well, done.stderr
