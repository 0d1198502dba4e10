"""The pictures of the Lab tab: those there are, as they are, and none too large."""

import json
from pathlib import Path

import pytest

from lab import plots

_ROOT = Path(__file__).parents[2]


def _results(root: Path, **files: bytes) -> None:
    for name, content in files.items():
        folder, _, file = name.partition("__")
        path = root / plots.RESULTS / folder / file.replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def test_the_page_has_the_pictures_of_the_results() -> None:
    folder = _ROOT / plots.SHOWN
    told = json.loads((folder / plots.LIST).read_text())
    listed = [plots.Plot(**entries) for entries in told["plots"]]
    assert listed == plots.found(), "run `make report`"
    more = {plots.DECODER} if told["draws"] else set()
    assert {p.name for p in folder.iterdir()} == {plots.LIST, *(p.file for p in listed)} | more
    drawn = {path.name for path in (_ROOT / plots.RESULTS / "lab").glob("*.png")}
    assert drawn <= {plot.file for plot in listed}
    for plot in listed:
        assert (folder / plot.file).read_bytes() == plots.source(_ROOT, plot).read_bytes()


def test_only_what_there_is_is_listed(tmp_path: Path) -> None:
    told = json.dumps({"title": "a task", "paper": "figure 9", "claim": "it learns"}).encode()
    _results(tmp_path, lab__draw_json=told, lab__draw_png=b"curves", analysis__growth_png=b"growth")
    _results(tmp_path, lab__pen_json=told, lab__other_png=b"of no task")
    published = plots.publish(tmp_path)
    assert [plot.file for plot in published] == ["draw.png", "growth.png"]
    assert (tmp_path / plots.SHOWN / "draw.png").read_bytes() == b"curves"
    assert published[0].text == "The paper: it learns."
    assert not json.loads((tmp_path / plots.SHOWN / plots.LIST).read_text())["draws"]


def test_results_that_lack_what_is_told_beside_a_picture_are_named(tmp_path: Path) -> None:
    _results(tmp_path, lab__draw_json=b'{"title": "a task", "paper": "figure 9"}')
    with pytest.raises(ValueError, match=r"draw\.json is of another version .* 'claim' is missing"):
        plots.publish(tmp_path)


def test_what_draws_a_digit_comes_along(tmp_path: Path) -> None:
    decoder = tmp_path / plots.RESULTS / "lab" / plots.DECODER
    decoder.parent.mkdir(parents=True)
    decoder.write_bytes(b"weights")
    plots.publish(tmp_path)
    assert json.loads((tmp_path / plots.SHOWN / plots.LIST).read_text())["draws"]
    assert (tmp_path / plots.SHOWN / plots.DECODER).read_bytes() == b"weights"


def test_what_is_no_more_is_removed(tmp_path: Path) -> None:
    _results(tmp_path, analysis__growth_png=b"growth")
    plots.publish(tmp_path)
    (tmp_path / plots.RESULTS / "analysis" / "growth.png").unlink()
    assert plots.publish(tmp_path) == []
    assert [p.name for p in (tmp_path / plots.SHOWN).iterdir()] == [plots.LIST]


def test_a_large_picture_is_refused_and_those_before_stay(tmp_path: Path) -> None:
    _results(tmp_path, analysis__growth_png=b"growth")
    plots.publish(tmp_path)
    _results(tmp_path, analysis__growth_png=bytes(plots.MAX_PICTURE_BYTES + 1))
    with pytest.raises(ValueError, match=r"growth\.png has 150001 bytes"):
        plots.publish(tmp_path)
    assert (tmp_path / plots.SHOWN / "growth.png").read_bytes() == b"growth"


def test_no_result_of_a_task_is_large() -> None:
    files = [
        p for kind in ("json", "png") for p in (_ROOT / plots.RESULTS / "lab").glob(f"*.{kind}")
    ]
    sizes = {p.name: p.stat().st_size for p in files}
    assert sizes
    assert {n: size for n, size in sizes.items() if size > plots.MAX_PICTURE_BYTES} == {}
