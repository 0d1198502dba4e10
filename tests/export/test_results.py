"""Results as files."""

import json
import os
from pathlib import Path

import pytest

from export import results
from export.results import command, machine, write_json

_CONTENT = {
    "empty": {}, "none": [], "curve": [[1, 2.5], [2, None]], "text": 'a "quoted"\nline [ 1, 2 ]',
    "rows": [{"name": "a", "values": [1, 2]}, {"name": "b", "values": []}],
}  # fmt: skip


@pytest.mark.parametrize("content", [{}, _CONTENT, {"nested": _CONTENT}])
def test_what_is_written_is_what_is_read(content: dict[str, object], tmp_path: Path) -> None:
    write_json(tmp_path / "results.json", content)
    assert json.loads((tmp_path / "results.json").read_text()) == content


def test_a_list_without_objects_is_on_one_line(tmp_path: Path) -> None:
    write_json(tmp_path / "results.json", _CONTENT)
    lines = (tmp_path / "results.json").read_text().splitlines()
    assert '  "none": [],' in lines
    assert '  "curve": [[1, 2.5], [2, null]],' in lines
    assert '      "values": [1, 2]' in lines


def test_the_cores_that_are_told_are_those_a_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = {0: {5, 6, 900}}  # by which 0 is the process that asks
    monkeypatch.setattr(os, "sched_getaffinity", own.__getitem__)
    assert machine()["cores"] == 3


def test_a_file_of_results_ends_with_its_line(tmp_path: Path) -> None:
    write_json(tmp_path / "results.json", _CONTENT)
    assert (tmp_path / "results.json").read_text().endswith("\n}\n")


def test_what_a_module_was_run_by_is_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--all"])
    assert command("bench", None) == "python -m bench --all"
    assert command("bench", ["--quick"]) == "python -m bench --quick"
    assert command("bench", []) == "python -m bench"


@pytest.mark.parametrize(
    ("flags", "width"),
    [("fma avx2 avx512f", "AVX-512"), ("fma avx2 sme", "AVX2"), ("sse4_2 avx", "no AVX2")],
)
def test_a_processor_is_told_with_the_widest_vectors_it_has(
    flags: str, width: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "cpuinfo"
    told.write_text(f"model name\t: A processor: one @ 2 GHz\nflags\t\t: {flags}\n" * 2)
    monkeypatch.setattr(results, "Path", lambda place: told)
    assert results.machine()["processor"] == f"A processor: one @ 2 GHz, {width}"


@pytest.mark.parametrize(
    ("flags", "width"),
    [("fp asimd", "NEON"), ("fp asimd sve", "SVE"), ("asimd sve sme", "SME"), ("sme2 sme", "SME2")],
)
def test_an_arm_is_told_by_the_numbers_that_it_has_for_a_name(
    flags: str, width: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "cpuinfo"
    parts = [
        f"processor\t: {n}\nFeatures\t: {flags}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n"
        for n, part in enumerate(("0xd0c", "0xd05"))
    ]
    told.write_text("\n".join(parts))
    monkeypatch.setattr(results, "Path", lambda place: told)
    assert results.machine()["processor"] == f"ARM 0x41, part 0xd0c, {width}"
