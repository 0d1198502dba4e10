"""What images install is pinned by hash, by the same versions as everything else, and listed."""

import ast
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

_ROOT = Path(__file__).parents[1]
_LOCKS = sorted((_ROOT / "requirements").glob("*.lock"))
_EACH_LOCK = pytest.mark.parametrize("lock", _LOCKS, ids=lambda lock: lock.stem)
_PIN = re.compile(r"^([a-z0-9.-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)\n", re.M)


def _pins(text: str) -> dict[str, str]:
    return {name: version for name, version, _ in _PIN.findall(text)}


def _role(name: str) -> set[str]:
    """The packages a role asks for, those of the roles in it too."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    asked = set()
    for requirement in map(Requirement, project["optional-dependencies"][name]):
        if requirement.name == project["name"]:
            asked |= {package for role in requirement.extras for package in _role(role)}
        else:
            asked.add(canonicalize_name(requirement.name))
    return asked


@cache
def _packages() -> Mapping[str, list[str]]:
    """By what is imported of them."""
    return packages_distributions()


def _statements(of: ast.AST) -> Iterator[ast.AST]:
    """Those within others too; the expressions in them are five times as many."""
    for node in ast.iter_child_nodes(of):
        if not isinstance(node, ast.expr):
            yield node
            yield from _statements(node)


def _imported(folder: str) -> dict[str, set[str]]:
    """The packages, of others, that may be meant by what the files of a folder import."""
    names = set()
    for path in (_ROOT / folder).rglob("*.py"):
        for node in _statements(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").partition(".")[0])
    of = _packages()
    others = {n for n in names - sys.stdlib_module_names if not (_ROOT / n).is_dir()}
    return {name: set(map(canonicalize_name, of.get(name, ()))) for name in others}


@pytest.mark.parametrize(
    ("roles", "folders"),
    [
        ("service traces", "contract service"),
        ("train", "contract models training"),
        ("train service", "export"),
        ("train service bench", "lab"),
        ("client", "clients"),
    ],
)
def test_a_role_asks_for_all_that_is_imported_there(roles: str, folders: str) -> None:
    """What only comes along with another package may go with its next version."""
    asked = {package for role in roles.split() for package in _role(role)}
    # Which of its two packages it is, cpu and gpu say.
    asked |= {"onnxruntime", "onnxruntime-gpu"}
    for folder in folders.split():
        imported = _imported(folder)
        assert len(imported) > 0
        assert {n for n, packages in imported.items() if not packages & asked} == set(), folder


def test_what_make_installs_to_work_with_is_all_that_is_imported() -> None:
    """But for peers, which are wanted to measure beside them alone."""
    makefile = (_ROOT / "Makefile").read_text("utf-8")
    (roles,) = re.findall(r"^\.venv/\.stamp: ROLES = (\S+)$", makefile, re.M)
    asked = {package for role in roles.split(",") for package in _role(role)}
    for folder in ("contract", "models", "training", "export", "service", "lab", "clients"):
        imported = _imported(folder)
        assert {n for n, packages in imported.items() if not packages & asked} == set(), folder


def test_what_is_installed_is_the_client_that_the_command_is_of() -> None:
    """With no word of it setuptools takes every folder for a package, and refuses."""
    content = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    found = content["tool"]["setuptools"]["packages"]["find"]["include"]
    commands = content["project"]["scripts"].values()
    assert {command.partition(".")[0] for command in commands} == set(found)


def test_the_python_of_the_images_is_one_that_the_project_takes() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    (base,) = re.findall(r"^ARG BASE=python:([\d.]+)-", (_ROOT / "Dockerfile").read_text(), re.M)
    (least,) = re.findall(r"and Python\s([\d.]+)\s", (_ROOT / "README.md").read_text("utf-8"))
    for version in (base, least):
        assert SpecifierSet(project["requires-python"]).contains(version)


def test_every_image_has_a_lock() -> None:
    assert [lock.stem for lock in _LOCKS] == ["cpu", "gpu", "load", "sbom"]
    one_line_each = (_ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"\bpip (?:--python \S+ )?install [^&\n]*", one_line_each)
    assert len(installs) == 3
    assert all("--require-hashes" in install for install in installs)


@_EACH_LOCK
def test_a_lock_has_the_versions_of_everything_else_and_hashes(lock: Path) -> None:
    text = lock.read_text("utf-8")
    constraints = _pins((_ROOT / "constraints.txt").read_text())
    pins = _PIN.findall(text)
    assert len(pins) == text.count("==") > 20  # no line in another form
    for name, version, hashes in pins:
        assert constraints[name] == version, f"{name}: make locks"
        assert hashes


@_EACH_LOCK
def test_a_lock_has_all_that_its_role_asks_for(lock: Path) -> None:
    missing = _role(lock.stem) - _pins(lock.read_text("utf-8")).keys()
    assert not missing, f"{missing}: make locks"


def test_what_is_asked_about_plotters_is_pinned_with_all_that_it_wants_and_hashes() -> None:
    text = (_ROOT / "requirements" / "vpype.txt").read_text("utf-8")
    pins = _PIN.findall(text)
    assert len(pins) == text.count("==") > 10  # no line in another form
    assert all(hashes for _, _, hashes in pins)
    asked = _pins((_ROOT / "requirements" / "vpype.in").read_text("utf-8"))
    assert len(asked) == 2
    assert asked.items() <= _pins(text).items()


def test_nothing_that_trains_is_in_an_image() -> None:
    for lock in _LOCKS:
        assert not {"torch", "onnx", "onnxscript"} & _pins(lock.read_text()).keys()


def test_the_bill_of_materials_names_every_package(tmp_path: Path) -> None:
    """As the image writes it: the same for the same packages."""
    bill = tmp_path / "sbom.cdx.json"
    (asked,) = re.findall(r"cyclonedx-py (environment .*?) -o", (_ROOT / "Dockerfile").read_text())
    run = [sys.executable, "-m", "cyclonedx_py", *asked.split(), "--no-validate", "-o", bill]
    subprocess.run([*run, sys.executable], check=True, capture_output=True)
    content = json.loads(bill.read_text())
    assert content["bomFormat"] == "CycloneDX"
    assert "serialNumber" not in content  # which is drawn, as the time is that of the day
    assert "timestamp" not in content["metadata"]
    listed = {(part["name"].lower(), part["version"]) for part in content["components"]}
    # Not what a package carries within itself, which importing setuptools adds to the path.
    places = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    installed = {(d.name.lower(), d.version) for d in distributions(path=list(places))}
    assert installed <= listed
