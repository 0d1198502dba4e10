"""The site is built from what is shipped, whatever onnxruntime-web and previews lie beside it."""

import json
import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.site.conftest import Ask

_ROOT = Path(__file__).parents[2]


_PARITY = [{"name": "text", "value": 1.0, "bound": 1.0}]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, node: str) -> Path:
    """A build of what is shipped."""
    folder = tmp_path_factory.mktemp("build")
    files = (_ROOT / "artifacts").glob("*/manifest.json")  # a build that failed has left none
    _beside(folder, *(json.loads(file.read_text()) for file in files))
    assert _build(node, folder) == 0
    return folder / "site"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A project with one small model, and what a build finds beside it."""
    for name in ("site", "service/web"):
        shutil.copytree(_ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("lab"))
    (tmp_path / "LICENSE").write_text("as you like")
    texts = {"model.onnx": "a graph", "model.safetensors": "weights", "golden.safetensors": "gold"}
    manifest = {
        "name": "small", "kind": "language", "hyperparameters": {}, "parity": _PARITY,
        "graphs": {"scan": {"plain": "model.onnx"}},
        "files": {name: sha256(text.encode()).hexdigest() for name, text in texts.items()},
    }  # fmt: skip
    folder = tmp_path / "artifacts" / "small"
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    _beside(tmp_path / "build", manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path


def _manifest(root: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((root / "artifacts/small/manifest.json").read_text())
    return told


def _beside(folder: Path, *manifests: dict[str, Any]) -> None:
    """A runtime that runs nothing and previews that show nothing, for a build to find."""
    runtime = folder / "npm" / "node_modules" / "onnxruntime-web"
    (runtime / "dist").mkdir(parents=True)
    (runtime / "package.json").write_text(json.dumps({"version": "1", "license": "MIT"}))
    (runtime / "dist" / "ort-wasm-simd-threaded.wasm").write_bytes(b"\0asm")
    script = "export const env = {};\n//# sourceMappingURL=ort.map"
    (runtime / "dist" / "ort.wasm.bundle.min.mjs").write_text(script)
    for manifest in manifests:
        previews = folder / "drawn" / "previews" / manifest["name"]
        for style in manifest.get("styles", []):
            previews.mkdir(parents=True, exist_ok=True)
            (previews / f"{style['id']}.svg").write_text("<svg/>")
        (folder / "drawn").mkdir(exist_ok=True)
        (folder / "drawn" / f"{manifest['name']}.json").write_text("{}")


def _build(node: str, folder: Path, root: Path = _ROOT) -> int:
    """The status with which a build ends that finds all it needs in a folder, or some of it."""
    command = [node, "site/build.mjs", *(str(folder / n) for n in ("drawn", "npm", "site"))]
    return subprocess.run(command, cwd=root, check=False, timeout=120).returncode


def test_what_is_shipped_in_float32_is_in_it_and_the_page_is_kept(built: Path) -> None:
    index = json.loads((built / "models" / "index.json").read_text())
    names = {model["manifest"]["name"] for model in index["models"]}
    assert names >= {"handwriting", "shakespeare"}
    assert not any(name.endswith("int8") for name in names)
    kinds = {model["manifest"]["kind"] for model in index["models"]}
    assert kinds == {"handwriting", "language"}
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


def test_a_build_that_does_not_end_leaves_the_site_that_is_there(small: Path, node: str) -> None:
    """Another content is another version, or who has been there would see the page of before."""
    folder = small / "build"
    assert _build(node, folder, small) == 0
    before, worker = sorted((folder / "site").rglob("*")), folder / "site" / "sw.js"
    version = worker.read_text()
    (folder / "drawn" / "small.json").unlink()
    assert _build(node, folder, small) != 0
    assert sorted((folder / "site").rglob("*")) == before
    (folder / "drawn" / "small.json").write_text("{}")
    (folder / "site" / "old").touch()
    assert _build(node, folder, small) == 0
    assert sorted((folder / "site").rglob("*")) == before
    assert not list(folder.glob("site.*"))
    assert worker.read_text() == version
    (small / "LICENSE").write_text("as we like")
    assert _build(node, folder, small) == 0
    assert worker.read_text() != version


def test_a_page_of_files_is_what_the_service_has_without_what_that_alone_has(
    small: Path, node: str
) -> None:
    """And may fetch from nowhere else."""
    assert _build(node, small / "build", small) == 0
    site = small / "build" / "site"
    html = (site / "index.html").read_text()
    (policy,) = re.findall('<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["connect-src"] == rules["default-src"] == "'self'"
    assert rules["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert html.index(policy) < html.index("<link")
    assert "data-served" not in html
    assert "/docs" not in html
    assert not re.findall('(?:href|src)="/', html)  # whatever the site's path is
    assert not list(site.rglob("docs.*"))
    styles = '<link rel="stylesheet" href="([^"]*)">'
    served = re.findall(styles, (small / "service/web/index.html").read_text())
    linked = re.findall(styles, html)
    assert sorted(linked) == sorted([*served, "device/site.css"])
    assert not [path for path in linked if not (site / path).is_file()]
    assert "sourceMappingURL" not in (site / "device/ort/ort.js").read_text()
    notice = (site / "device/ort/NOTICE").read_text()
    assert notice == "onnxruntime-web 1, (c) Microsoft, licence MIT\n"
    modules = [file.read_text() for file in (site / "device").glob("*.js")]
    assert not [module for module in modules if "service/web/" in module]
    (model,) = json.loads((site / "models/index.json").read_text())["models"]
    files = _manifest(small)["files"]
    digest = sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    assert model["digest"] == digest  # the service's
    assert model["bytes"] == sum(file["bytes"] for file in model["files"].values())
    assert {name: file["sha256"] for name, file in model["files"].items()} == files


def test_a_model_that_is_altered_or_unproved_is_in_no_site(small: Path, node: str) -> None:
    index = small / "build" / "site" / "models" / "index.json"
    manifest, artifact = _manifest(small), small / "artifacts" / "small"
    worse = [{"name": "text", "value": 1.01, "bound": 1.0}]
    for number, parity in enumerate((worse, [*worse, *_PARITY], [], None)):
        other = shutil.copytree(artifact, artifact.with_name(f"other{number}"))
        changed = manifest | {"name": other.name, "parity": parity}
        (other / "manifest.json").write_text(json.dumps(changed))
    assert _build(node, small / "build", small) == 0
    (model,) = json.loads(index.read_text())["models"]
    assert model["manifest"]["name"] == "small"
    (artifact / "model.safetensors").write_text("other weights")
    assert _build(node, small / "build", small) != 0
