"""What `make` does by itself: of a copy of the Makefile, with something in the place of Python."""

import os
import shutil
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[1]
# As `export build` does, it takes no folder that is there and is no artifact.
_BUILDS = """#!/bin/sh
test ! -e artifacts/quickstart || exit 1
mkdir -p artifacts/quickstart && touch artifacts/quickstart/manifest.json
"""


def test_what_a_build_before_left_behind_does_not_stop_the_next(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(_ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(_BUILDS)
    python.chmod(0o755)
    (tmp_path / ".venv" / ".stamp").touch()
    folder = tmp_path / "artifacts" / "quickstart"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_text("of a build that was stopped before it was proved")
    made = ["make", "artifacts/quickstart/manifest.json"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    assert [path.name for path in folder.iterdir()] == ["manifest.json"]


def test_a_look_at_what_would_be_done_starts_no_container(tmp_path: Path) -> None:
    """`make -n` runs a line that says how to call make, with all that stands beside it."""
    shutil.copy(_ROOT / "Makefile", tmp_path)
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    docker.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    look = ["make", "-n", "docker-check"]
    told = subprocess.run(look, cwd=tmp_path, env=path, check=True, capture_output=True, text=True)
    assert "docker compose up --build --wait" in told.stdout
    assert not (tmp_path / "started").exists()
