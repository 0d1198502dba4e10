"""Results as files."""

import json
from pathlib import Path

import pytest

from export.results import write_json

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
    assert '  "curve": [[1, 2.5], [2, null]],' in lines
    assert '      "values": [1, 2]' in lines
