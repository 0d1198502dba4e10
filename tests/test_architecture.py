"""The rules of the house that a reader of the tree relies on."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_FORBIDDEN = {
    "models": {"export", "service", "bench", "onnx", "onnxruntime", "onnxscript", "onnx_ir"},
    "export": {"service", "bench"},
    "service": {"models", "export", "bench", "torch", "onnx", "onnxscript", "onnx_ir"},
}
_LONGEST_FILE = 400
_TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".html", ".js", ".css", ".sh", ""}
_NOT_OURS = {".git", ".venv", "runs", "data", "artifacts", "build", "dist", "__pycache__"}


def _python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (_ROOT / folder).rglob("*.py"))


def _imports(source: str) -> Iterator[str]:
    """The top-level name of every module a source imports, at its head or anywhere inside."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield str(node.module).partition(".")[0]


def _project_files() -> Iterator[Path]:
    """Every text file of the project, generated and fetched ones aside."""
    for folder, folders, files in os.walk(_ROOT):
        folders[:] = [f for f in folders if f not in _NOT_OURS and not f.endswith("_cache")]
        paths = (Path(folder, file) for file in files)
        yield from (path for path in paths if path.suffix in _TEXT_SUFFIXES)


def _name(path: Path) -> str:
    return str(path.relative_to(_ROOT))


@pytest.mark.parametrize("path", _python_files(*_FORBIDDEN), ids=_name)
def test_imports_run_one_way(path: Path) -> None:
    forbidden = _FORBIDDEN[path.relative_to(_ROOT).parts[0]]
    assert not forbidden.intersection(_imports(path.read_text()))


def test_imports_are_found_wherever_they_stand() -> None:
    source = "def f():\n    import torch.nn as nn\n    if nn:\n        from export.train import T\n"
    assert set(_imports(source)) == {"torch", "export"}


@pytest.mark.parametrize("path", _python_files(*_FORBIDDEN, "bench", "tests"), ids=_name)
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= _LONGEST_FILE


@pytest.mark.parametrize("path", _python_files(*_FORBIDDEN, "bench", "tests"), ids=_name)
def test_every_file_opens_by_saying_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", _python_files(*_FORBIDDEN), ids=_name)
def test_nothing_is_called_utils(path: Path) -> None:
    assert path.stem not in {"utils", "util", "helpers", "common", "misc"}


def test_no_file_points_outside_the_project() -> None:
    outside = "../" + "shared"  # in two parts, or this file would be found
    contents = {_name(path): path.read_text(errors="replace") for path in _project_files()}
    assert {"pyproject.toml", "service/app.py", "tests/test_architecture.py"} <= contents.keys()
    assert [name for name, content in contents.items() if outside in content] == []
