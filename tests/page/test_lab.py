"""The Lab tab: table 1 as the paper has it, and the worked table as PyTorch computes it."""

import re

import pytest
import torch
from torch import Tensor

from lab import plots
from lab.analysis.invariance import CHANGES, KINDS
from lab.analysis.padding import Z, per_column, per_row
from tests.page.conftest import Open
from tests.page.visit import Visit

_SAYS = "said => document.querySelector('#lab-drawn').textContent.startsWith(said)"
_SHOWN_DIGITS = 0.005  # half of the last digit that the page shows


def _shown(visit: Visit, table: str) -> Tensor:
    """The three normalised numbers of every row of a table."""
    rows = visit[f"#lab-{table} tr"].all()
    told = [row.locator("td").all_text_contents()[:3] for row in rows]
    return torch.tensor([[float(x.replace("\u2212", "-")) for x in row] for row in told]).double()


def _slide(visit: Visit, row: int, unit: int, value: int) -> None:
    visit[f"[aria-label='Row {row}, unit {unit}']"].fill(str(value))


def _assert_shows(visit: Visit, z: Tensor) -> None:
    expected = {"layer": per_row(z), "batch": per_column(z)}
    for table, normalised in expected.items():
        found = _shown(visit, table)
        torch.testing.assert_close(found, normalised, rtol=0, atol=_SHOWN_DIGITS + 1e-9)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_browser_finds_all_eighteen_invariances(site: str, opened: Open, width: int) -> None:
    with opened(site, "lab", viewport={"width": width, "height": 844}) as visit:
        assert visit["#lab-table"].is_hidden()
        for _ in range(3):  # each time of other networks
            visit.press("#lab-compute")
            assert "18 of 18 entries are the paper's" in visit.text("#lab-verdict")
        assert visit.text("#lab-kinds") == "Change" + "".join(f"{kind} norm" for kind in KINDS)
        rows = visit["#lab-invariances tr"].all()
        for row, (change, (_, paper)) in zip(rows, CHANGES.items(), strict=True):
            assert row.locator("th").text_content() == change
            words = ["invariant" if holds else "changes" for holds in paper]
            assert re.findall("invariant|changes", row.text_content()) == words
        assert visit.too_wide_by() == 0


def test_the_table_is_normalised_as_pytorch_does(site: str, opened: Open) -> None:
    z = torch.tensor(Z, dtype=torch.float64)
    with opened(site, "lab") as visit:
        _assert_shows(visit, z)
        _slide(visit, 2, 3, -8)
        z[1, 2] = -8
        _assert_shows(visit, z)
        visit["#lab-padding"].fill("4")
        _assert_shows(visit, torch.cat([z, torch.zeros(4, 3, dtype=torch.float64)]))
        visit.press("#lab-again")
        _assert_shows(visit, torch.tensor(Z, dtype=torch.float64))


def test_padding_moves_rows_under_batch_norm_alone(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        visit["#lab-padding"].fill("2")
        assert "No row has moved by a bit" in visit.text("#lab-layer-moved")
        assert "moved a row by up to" in visit.text("#lab-batch-moved")
        visit["#lab-padding"].fill("0")
        assert "No row has moved by a bit" in visit.text("#lab-batch-moved")


def test_a_slider_is_moved_from_the_keyboard(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        visit["[aria-label='Row 1, unit 1']"].focus()
        visit.page.keyboard.press("ArrowRight")
        z = torch.tensor(Z, dtype=torch.float64)
        z[0, 0] += 1
        _assert_shows(visit, z)


def test_the_pictures_are_shown(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        visit["#lab-measured"].scroll_into_view_if_needed()
        assert len(plots.found()) > 0
        assert visit["#lab-plots figure"].count() == len(plots.found())
        for picture, plot in zip(visit["#lab-plots img"].all(), plots.found(), strict=True):
            picture.scroll_into_view_if_needed()
            loaded = "name => document.querySelector(`[src$='/${name}']`).naturalWidth > 0"
            visit.until(loaded, plot.file)


def test_a_digit_is_drawn_out_of_noise(site: str, opened: Open) -> None:
    if not (plots.SHOWN / plots.DECODER).exists():
        pytest.skip("the laboratory has not trained what draws")
    ink = "() => document.querySelector('#lab-canvas').toDataURL()"
    with opened(site, "lab") as visit:
        drawn = []
        for seed in (1, 2):
            visit.press("#lab-draw")
            visit.until(_SAYS, f"Seed {seed}, step 10")
            drawn.append(visit.page.evaluate(ink))
        assert drawn[0] != drawn[1]


def test_the_service_is_not_asked_to_compute(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        visit.page.wait_for_load_state("networkidle")  # its icon may come last
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(request.url))
        visit.press("#lab-compute")
        _slide(visit, 1, 1, -3)
        assert "18 of 18" in visit.text("#lab-verdict")
        assert [url for url in asked if "/static/lab/" not in url] == []
