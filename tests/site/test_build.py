"""The site is built from what is shipped, whatever onnxruntime-web and previews lie beside it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.site.conftest import Ask

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, node: str) -> Path:
    """A build with a runtime that runs nothing and previews that show nothing."""
    tmp_path = tmp_path_factory.mktemp("build")
    runtime = tmp_path / "npm" / "node_modules" / "onnxruntime-web"
    (runtime / "dist").mkdir(parents=True)
    (runtime / "package.json").write_text(json.dumps({"version": "1", "license": "MIT"}))
    (runtime / "dist" / "ort-wasm-simd-threaded.wasm").write_bytes(b"\0asm")
    (runtime / "dist" / "ort.wasm.bundle.min.mjs").write_text("export const env = {};\n")
    drawn = tmp_path / "drawn"
    for file in (_ROOT / "artifacts").glob("*/manifest.json"):  # a build that failed has left none
        folder, manifest = file.parent, json.loads(file.read_text())
        previews = drawn / "previews" / folder.name
        previews.mkdir(parents=True)
        for style in manifest.get("styles", []):
            (previews / f"{style['id']}.svg").write_text("<svg/>")
        (drawn / f"{folder.name}.json").write_text("{}")
    assert _build(node, tmp_path) == 0
    return tmp_path / "site"


def _build(node: str, folder: Path) -> int:
    """The status with which a build ends that finds all it needs in a folder, or some of it."""
    command = [node, "site/build.mjs", *(str(folder / n) for n in ("drawn", "npm", "site"))]
    return subprocess.run(command, cwd=_ROOT, check=False, timeout=120).returncode


def test_what_is_shipped_in_float32_is_in_it_and_the_page_is_kept(built: Path) -> None:
    index = json.loads((built / "models" / "index.json").read_text())
    names = {model["manifest"]["name"] for model in index["models"]}
    assert names >= {"handwriting", "shakespeare"}
    assert not any(name.endswith("int8") for name in names)
    for model in index["models"]:
        for file in model["files"].values():
            assert (built / file["path"]).stat().st_size == file["bytes"]
    assert (built / "LICENSE").read_bytes() == (_ROOT / "LICENSE").read_bytes()
    card = (_ROOT / "docs" / "model-card-handwriting.md").read_bytes()
    assert (built / "models" / "handwriting" / "model-card.md").read_bytes() == card
    worker = (built / "sw.js").read_text()
    kept = json.loads(worker.partition("const FILES = ")[2].partition(";\n")[0])
    there = {str(p.relative_to(built)) for p in built.rglob("*") if p.is_file()}
    assert {p for p in there if not p.endswith(".gz")} == {*kept[1:], "index.html", "sw.js"}
    assert "VERSION" not in worker


def test_every_hand_has_its_preview_and_no_model_that_is_left_out(built: Path, ask: Ask) -> None:
    index = json.loads((built / "models" / "index.json").read_text())
    listed = ask("previews", [model["manifest"] for model in index["models"]])
    wanted = {path for previews in listed for path in previews}
    assert any(path.startswith("models/previews/handwriting/") for path in wanted)
    assert {str(p.relative_to(built)) for p in built.rglob("models/previews/*/*")} == wanted
    assert not list(built.glob("models/previews/*.svg"))


def test_a_build_that_does_not_end_leaves_the_site_that_is_there(built: Path, node: str) -> None:
    before = sorted(built.rglob("*"))
    (built.parent / "drawn" / "shakespeare.json").unlink()
    assert _build(node, built.parent) != 0
    assert sorted(built.rglob("*")) == before
    (built.parent / "drawn" / "shakespeare.json").write_text("{}")
    (built / "old").touch()
    assert _build(node, built.parent) == 0
    assert sorted(built.rglob("*")) == before
    assert not list(built.parent.glob("site.*"))
