"""Of what noticed a planted defect it is asked whether it holds without the defect, or nobody is
believed."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.mutations import __main__ as planting
from tests.mutations.__main__ import _copy, _pytest, _void, main
from tests.mutations.table import ROOT, Defect, read_table

_TESTS = "def test_holds():\n    pass\n\n\ndef test_fails():\n    assert False\n"


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of two tests, one of which fails as it is. They ask for no plugin of those that are
    installed, which take four times as long to load as pytest."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = tmp_path / "clean"
    (folder / "tests" / "mutations").mkdir(parents=True)
    for name in ("__init__.py", "mutations/__init__.py", "mutations/plugin.py"):
        shutil.copyfile(ROOT / "tests" / name, folder / "tests" / name)
    (folder / "tests" / "test_it.py").write_text(_TESTS)
    return folder


def _noticed(name: str) -> dict[str, Any]:
    return {"id": name, "killed_by": name}


def test_what_fails_without_a_defect_has_noticed_none(clean: Path) -> None:
    results = [_noticed("tests/test_it.py::test_holds"), _noticed("tests/test_it.py::test_fails")]
    _void(clean, None, results)
    assert [result["killed_by"] for result in results] == ["tests/test_it.py::test_holds", None]


def test_a_defect_that_had_no_end_does_not_keep_the_others_from_being_asked(clean: Path) -> None:
    (clean / "tests" / "test_long.py").write_text(
        "from time import sleep as test_it\ntest_it(60)\n"
    )
    (found,) = _pytest(clean, ["tests/test_long.py::test_it"], None, 1)
    endless = _noticed(*found.values())
    results = [endless, _noticed("tests/test_it.py::test_fails")]
    _void(clean, None, results)
    assert endless["killed_by"] == "the limit of 1 s"
    assert results[1]["killed_by"] is None


def test_a_browser_is_driven_in_a_process_of_its_own(clean: Path) -> None:
    """Whose event loop runs on in it."""
    lasting = "import asyncio\nloop = asyncio.new_event_loop()\n"
    for name, test in (
        ("page", "asyncio._set_running_loop(loop)"),
        ("rest", "asyncio.run(asyncio.sleep(0))"),
    ):
        (clean / "tests" / name).mkdir()
        (clean / "tests" / name / f"test_{name}.py").write_text(
            f"{lasting}\n\ndef test_it():\n    {test}\n"
        )
    names = [f"tests/{name}/test_{name}.py::test_it" for name in ("page", "rest")]
    results = [_noticed(name) for name in names]
    _void(clean, None, results)
    assert [result["killed_by"] for result in results] == names


@pytest.mark.parametrize("gone", ["tests/test_it.py::test_gone", "tests/test_gone.py::test_it"])
def test_a_test_that_is_gone_ends_the_command(clean: Path, gone: str) -> None:
    with pytest.raises(SystemExit, match="could not be run"):
        _void(clean, None, [_noticed("tests/test_it.py::test_fails"), _noticed(gone)])


def test_a_file_that_cannot_be_imported_ends_the_command(clean: Path) -> None:
    (clean / "tests" / "test_other.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(SystemExit, match="could not be run"):
        _void(clean, None, [_noticed("tests/test_other.py::test_it")])


def test_a_copy_has_what_its_tests_read_and_the_artifacts_and_no_data(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name in ("tests/fixtures/data/ink", "data/corpus", "artifacts/pen", "runs/last", ".venv/x"):
        (project / name).parent.mkdir(parents=True)
        (project / name).touch()
    copy = _copy(project, tmp_path / "copy")
    assert {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()} == {
        "tests/fixtures/data/ink"
    }
    assert (copy / "artifacts" / "pen").is_file()


def test_a_defect_of_no_table_is_told_before_any_is_planted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mutations", "uniforms-made-ahead-twice", "none-such"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "no such defect: none-such\n" in capsys.readouterr().err


def test_after_ctrl_c_no_others_are_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    planted: list[str] = []

    def interrupted(clean: Path, defect: Defect, *_: object) -> None:
        planted.append(defect.id)
        time.sleep(0.1)
        raise KeyboardInterrupt

    monkeypatch.setattr(planting, "_copy", lambda source, target: target)
    monkeypatch.setattr(planting, "_plant", interrupted)
    ids = [defect.id for defect in read_table() if defect.file.startswith("lab/")]
    monkeypatch.setattr("sys.argv", ["mutations", *ids])
    with pytest.raises(KeyboardInterrupt):
        main()
    assert len(planted) < 10 < len(ids)
