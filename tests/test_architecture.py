"""The rules of the house that a reader of the tree relies on."""

import ast
import os
import re
import tomllib
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.conftest import HEARD, heard

_ROOT = Path(__file__).parents[1]
_HOUSE = {"contract", "models", "training", "export", "service", "lab", "bench", "clients"}
# What a folder may import of the house beside itself, and which packages it does without.
_MAY_IMPORT = {
    "contract": set(),
    "models": {"contract"},
    "training": {"contract", "models"},
    "export": {"contract", "models", "training"},
    "service": {"contract"},
    "lab": {"contract", "models", "training", "export", "service"},
    "bench": {"contract", "models", "training", "export", "service"},
    "clients": set(),
}
_EXPORT_SIDE = {"torch", "onnx", "onnxscript", "onnx_ir"}
_WEB = {"fastapi", "starlette", "uvicorn"}
_DOES_WITHOUT = {
    "contract": _EXPORT_SIDE | _WEB | {"onnxruntime"},
    "models": _EXPORT_SIDE - {"torch"} | _WEB | {"onnxruntime"},
    "training": _EXPORT_SIDE - {"torch"} | _WEB | {"onnxruntime"},
    "export": _WEB,
    "service": _EXPORT_SIDE,
    "clients": _EXPORT_SIDE | _WEB | {"onnxruntime", "numpy"},
}
# The stages that know of kinds by their objects alone, the folders of the kinds in them, and the
# files that register those. `models` has the nouns of every kind; lab and bench measure some.
_STAGES = ("contract", "training", "export", "service")
_KINDS = {"text": "language", "ink": "handwriting", "reader": "reader"}
# A kind that is built on another: what it reads is what that one writes.
_BUILT_ON = {"reader": "ink"}
_REGISTRIES = {"kinds.py", "manifests.py"}
_OF_NO_KIND = {"cells", "norms", "stack", "quantized", "recurrence", "generation"}
_TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".html", ".js", ".css", ".sh", ""}
_NOT_OURS = {".git", ".venv", "runs", "data", "artifacts", "build", "dist", "__pycache__"}


@cache
def _nodes(source: str) -> tuple[ast.AST, ...]:
    """Of the tree of a source, which several rules look at."""
    return tuple(ast.walk(ast.parse(source)))


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    _nodes.cache_clear()


def _python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (_ROOT / folder).rglob("*.py"))


def _modules(source: str) -> Iterator[str]:
    """The dotted name of every module a source imports, at its head or anywhere inside; what is
    imported from a package counts as a module of it."""
    for node in _nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _imports(source: str) -> set[str]:
    """The top-level name of all of them."""
    return {name.partition(".")[0] for name in _modules(source)}


def _kind_of(path: Path) -> str | None:
    """The folder of the kind that a file of a stage belongs to."""
    parts = path.relative_to(_ROOT).with_suffix("").parts
    return parts[1] if parts[1] in _KINDS else None


def _names_a_kind(source: str, own: str | None) -> list[str]:
    """Where a source names a kind: by its name as a word, by a module of its folders, or by its
    networks. A kind may name itself, and what it is built on."""
    known = {own, _BUILT_ON.get(own or "")}
    others = {folder: name for folder, name in _KINDS.items() if folder not in known}
    found = [
        node.value
        for node in _nodes(source)
        if isinstance(node, ast.Constant) and node.value in others.values()
    ]
    for module in _modules(source):
        stage, _, rest = module.partition(".")
        first = rest.partition(".")[0]
        if stage in _STAGES and first in others:
            found.append(module)
        if stage == "models" and own is None and first not in _OF_NO_KIND:
            found.append(module)
    return found


def _project_files() -> Iterator[Path]:
    """Every text file of the project, generated and fetched ones aside."""
    for folder, folders, files in os.walk(_ROOT):
        folders[:] = [f for f in folders if f not in _NOT_OURS and not f.endswith("_cache")]
        paths = (Path(folder, file) for file in files)
        yield from (path for path in paths if path.suffix in _TEXT_SUFFIXES)


def _name(path: Path) -> str:
    return str(path.relative_to(_ROOT))


@pytest.mark.parametrize("folder", sorted(_HOUSE))
def test_imports_run_one_way(folder: str) -> None:
    foreign = (_HOUSE - _MAY_IMPORT[folder] - {folder}) | _DOES_WITHOUT.get(folder, set())
    found = {_name(path): _imports(path.read_text()) & foreign for path in _python_files(folder)}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_imports_are_found_wherever_they_stand() -> None:
    source = "def f():\n    import torch.nn as nn\n    if nn:\n        from export.train import T\n"
    assert _imports(source) == {"torch", "export"}


def test_every_folder_of_code_has_a_rule() -> None:
    packages = {path.parent.name for path in _ROOT.glob("*/__init__.py")}
    assert packages - {"tests"} == _HOUSE == _MAY_IMPORT.keys()


def test_no_kind_is_named_outside_its_folders() -> None:
    paths = [path for path in _python_files(*_STAGES) if path.name not in _REGISTRIES]
    found = {_name(path): _names_a_kind(path.read_text(), _kind_of(path)) for path in paths}
    assert {name: named for name, named in found.items() if named} == {}


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ("if manifest.kind == 'handwriting':\n    pass", None),
        ("def f():\n    from export.ink.golden import draw", None),
        ("from service.text import routes", "ink"),
        ("from contract import ink", None),
        ("from training.reader.rows import cut", "ink"),
        ("from training.text.data import streams", "reader"),
        ("from models.handwriting import HandwritingModel", None),
    ],
)
def test_a_kind_is_found_wherever_it_is_named(source: str, own: str | None) -> None:
    assert len(_names_a_kind(source, own)) == 1


def test_a_kind_may_name_itself() -> None:
    source = "from export.ink.golden import draw\nfrom models.mixture import sample\n"
    assert _names_a_kind(source + "name = 'handwriting'", "ink") == []
    assert _names_a_kind("from training.ink.compose import Rows", "reader") == []


def _opens_text(method: str, call: ast.Call) -> bool:
    """Whether it is `open` of a path for text: its first argument, if any, is a mode without b."""
    modes = [m.value if isinstance(m, ast.Constant) else None for m in call.args[:1]]
    return method == "open" and all(isinstance(m, str) and set(m) <= set("rwaxt+") for m in modes)


def _in_any_encoding(source: str) -> list[int]:
    """The lines where a text file is read or written in whatever encoding the locale has."""
    named_by = {"read_text": 1, "write_text": 2}
    return [
        node.lineno
        for node in _nodes(source)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if len(node.args) < named_by.get(node.func.attr, 0) or _opens_text(node.func.attr, node)
        if "encoding" not in {keyword.arg for keyword in node.keywords}
    ]


def test_a_text_file_has_an_encoding_whatever_the_locale() -> None:
    found = {_name(path): _in_any_encoding(path.read_text()) for path in _python_files(*_HOUSE)}
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert _in_any_encoding("p.read_text()\np.write_text(t)\np.write_text(t, 'utf-8')") == [1, 2]
    assert _in_any_encoding("p.open()\np.open('a')\np.open('rb')\nos.open(p, 0)") == [1, 2]


def test_no_file_is_too_long() -> None:
    lines = {_name(p): len(p.read_text().splitlines()) for p in _python_files(*_HOUSE, "tests")}
    most = {name: 400 if name.startswith("tests") else 350 for name in lines}
    assert {name: count for name, count in lines.items() if count > most[name]} == {}


def test_every_file_opens_by_saying_what_it_is() -> None:
    paths = _python_files(*_HOUSE, "tests")
    assert [_name(p) for p in paths if not re.match(r'"""\s*[^\s"]', p.read_text())] == []


def test_nothing_is_called_utils() -> None:
    names = {"utils", "util", "helpers", "common", "misc"}
    assert [_name(p) for p in _python_files(*_HOUSE) if p.stem in names] == []


def test_no_file_points_outside_the_project() -> None:
    outside = "../" + "shared"  # in two parts, or this file would be found
    contents = {_name(path): path.read_text(errors="replace") for path in _project_files()}
    assert {"pyproject.toml", "service/app.py", "tests/test_architecture.py"} <= contents.keys()
    assert [name for name, content in contents.items() if outside in content] == []


def test_who_imports_a_command_hears_signals_as_before(pytestconfig: pytest.Config) -> None:
    """A test that sends itself one would end all others with 0."""
    assert pytestconfig.stash[HEARD]
    before = heard()
    for name in ("bench", "export", "lab", "service", "training"):
        import_module(f"{name}.__main__")
        assert heard() == before, name


def test_a_warning_is_an_error() -> None:
    """What a package will drop is known before it does."""
    with pytest.raises(FutureWarning):
        warnings.warn("it will go", FutureWarning, stacklevel=1)


def test_types_are_looked_at_strictly_of_all_that_is_imported_there() -> None:
    """What measures alone goes without."""
    asked = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert asked["strict"]
    assert set(asked["files"]) == _HOUSE - {"bench"}
