"""The site's modules under node, and a service to compare them with."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import Service, running, settings
from tests.site.node import Node
from tests.site.visiting import Visitor

_ROOT = Path(__file__).parents[2]
_SCRIPTS = ("site", "service/web")
_PATIENCE_S = 300
# Of onnxruntime-web; what makes sessions a test has to bring.
_RUNTIME = """
export const env = { wasm: {}, versions: { web: "any" } };
export const InferenceSession = { create: (...given) => globalThis.createSession(...given) };
export class Tensor {
  constructor(type, data, dims) {
    Object.assign(this, { type, data, dims });
  }
}
"""

Ask = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def node() -> str:
    """Node.js, without which what asks for it is skipped."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed: the site's scripts were not run")
    return found


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory, node: str) -> Path:
    """The scripts where node takes them for modules, and what asks them."""
    folder = tmp_path_factory.mktemp("scripts")
    for name in _SCRIPTS:
        shutil.copytree(_ROOT / name, folder / name, ignore=shutil.ignore_patterns("lab"))
    for asking in Path(__file__).parent.glob("*.mjs"):
        shutil.copy(asking, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "site" / "package.json").unlink()
    (folder / "site" / "ort").mkdir()  # which `make site` puts there
    (folder / "site" / "ort" / "ort.js").write_text(_RUNTIME)
    return folder


@pytest.fixture(scope="session")
def ask(modules: Path) -> Iterator[Ask]:
    """Ask one of the questions in `answers.mjs` about some cases: an answer each."""
    with Node(modules, "answers.mjs") as node:

        def asked(question: str, cases: list[Any], *arguments: str) -> list[Any]:
            told = {"question": question, "cases": cases, "arguments": arguments}
            answers: list[Any] = node.answer(told, _PATIENCE_S)["answers"]
            assert len(answers) == len(cases)
            return answers

        yield asked


@pytest.fixture(scope="session")
def visit(modules: Path) -> Iterator[Visitor]:
    """Visit the page in a document that stands in for a browser's."""
    with Visitor(modules) as visitor:
        yield visitor


@pytest.fixture(scope="session")
def onnxruntime_web() -> str:
    """Where onnxruntime-web is installed; skipped where `make site` has not been there."""
    folder = _ROOT / "build" / "npm" / "node_modules" / "onnxruntime-web"
    if not folder.exists():
        pytest.skip("onnxruntime-web is not installed; `make site` does that")
    return str(folder)


@pytest.fixture(scope="session")
def artifact() -> Callable[[str], Path]:
    """A shipped model by its name; skipped where it is not there."""

    def named(name: str) -> Path:
        folder = _ROOT / "artifacts" / name
        if not folder.exists():
            pytest.skip(f"artifacts/{name} is not there")
        return folder

    return named


@pytest.fixture(scope="module")
def service(
    artifact: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service with the shipped models that are asked."""
    folder = tmp_path_factory.mktemp("shipped")
    for name in ("shakespeare", "handwriting"):
        shutil.copytree(artifact(name), folder / name)
    with running(settings(folder)) as running_service:
        yield running_service
