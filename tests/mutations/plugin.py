"""What pytest loads beside the tests of a planted defect.

It tells which tests failed, a line of JSON each, and gives out artifacts that were made before: no
defect of the service can change them, and making them takes longer than most tests.
"""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REPORT, MADE = "EVENKEEL_MUTATIONS_REPORT", "EVENKEEL_MUTATIONS_MADE"


def pytest_configure(config: pytest.Config) -> None:
    if made := os.environ.get(MADE):
        import tests

        stand_in = _Made("tests.artifacts", Path(made))
        vars(tests)["artifacts"] = sys.modules["tests.artifacts"] = stand_in


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _tell("test", report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _tell("collection", report.nodeid)


def _tell(what: str, name: str) -> None:
    with Path(os.environ[REPORT]).open("a", encoding="utf-8") as report:
        report.write(json.dumps({what: name}) + "\n")


class _Made(ModuleType):
    """`tests.artifacts` without its slow half: what it would write is copied."""

    def __init__(self, name: str, made: Path) -> None:
        super().__init__(name)
        self._made = made
        self._real: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        artifact = self._made / name.removeprefix("write_")
        if name.startswith("write_") and artifact.is_dir():
            return lambda folder: Path(shutil.copytree(artifact, folder / artifact.name))
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._load(), name)

    def _load(self) -> ModuleType:
        if self._real is None:
            path = Path(__file__).parents[1] / "artifacts.py"
            spec = importlib.util.spec_from_file_location("tests._artifacts", path)
            assert spec is not None
            assert spec.loader is not None
            self._real = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self._real)
        return self._real
