"""The Lab tab: table 1 as the paper has it, and the worked table as PyTorch computes it."""

import re
import time

import pytest
import torch
from torch import Tensor

from lab import plots
from lab.analysis.invariance import CHANGES, KINDS, LEAST_IF_NOT, MOST_IF_INVARIANT
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
        dot = visit["#lab-verdict"].evaluate("said => getComputedStyle(said, '::before').content")
        assert dot == "none"  # that of a verdict there is not yet
        for first in (1, 6, 11):  # each time of other networks
            visit.press("#lab-compute")
            said = f"18 of 18 entries are the paper's; networks {first} to {first + 4}, "
            assert said in visit.text("#lab-verdict")
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
        heads = [row.locator("th").all_text_contents() for row in visit[".trio thead tr"].all()]
        units = ["Case", "1", "2", "3"]
        assert heads == [units, [*units, "Moved"], [*units, "Moved"]]
        _assert_shows(visit, z)
        _slide(visit, 2, 3, -8)
        z[1, 2] = -8
        _assert_shows(visit, z)
        visit["#lab-padding"].fill("4")
        _assert_shows(visit, torch.cat([z, torch.zeros(4, 3, dtype=torch.float64)]))
        visit.press("#lab-again")
        _assert_shows(visit, torch.tensor(Z, dtype=torch.float64))
        told = visit["#lab-numbers output"].all_text_contents()
        assert [int(number) for number in told] == [x for row in Z for x in row]


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
        # Where nothing was measured there is no heading without a picture.
        nothing = {"plots": [], "draws": False}
        visit.page.route("**/lab/plots.json", lambda route: route.fulfill(json=nothing))
        with visit.page.expect_response("**/lab/plots.json"):
            visit.go("lab")
        visit.page.wait_for_timeout(100)
        assert visit["#lab-measured"].is_hidden()
        assert visit["#lab-drawing"].is_hidden()


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


# The picture the decoder draws last, beside what the canvas shows: the grey of each pixel's middle
# where no frame is, and the box of what is red beside the frame.
_SHOWN = """async ({ seed, steps }) => {
  const [{ drawDigit }, { readSafetensors }] = await Promise.all(
    ["digit", "safetensors"].map((name) => import(`/static/${name}.js`)),
  );
  const file = await fetch("/static/lab/draw-decoder.safetensors");
  const { tensors } = readSafetensors(new Uint8Array(await file.arrayBuffer()));
  const { picture, frame } = drawDigit(tensors, seed, steps).at(-1);
  const canvas = document.querySelector("#lab-canvas");
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const side = Math.sqrt(picture.length);
  const zoom = width / side;
  const red = [];
  for (let i = 0; i < data.length; i += 4)
    if (data[i] - data[i + 1] > 60) red.push([(i / 4) % width, Math.floor(i / 4 / width)]);
  const off = picture.map((ink, pixel) => {
    const [x, y] = [pixel % side, Math.floor(pixel / side)].map((n) => (n + 0.5) * zoom);
    const [r, g] = data.slice(4 * (y * width + x));
    return r === g ? Math.abs(r - 255 * (1 - ink)) : 0;
  });
  const box = [0, 1].map((i) => [Math.min, Math.max].map((of) => of(...red.map((at) => at[i]))));
  const [x, y, size] = frame;
  const edges = [x, y].map((at) => [-0.5, 0.5].map((part) => (at + part * size - 0.5) * zoom));
  return { off: Math.max(...off), box, edges };
}"""


def test_the_canvas_shows_the_picture_dark_on_white_and_its_frame(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        visit.wait("#lab-drawing")
        visit.press("#lab-draw")
        visit.press("#lab-draw")  # another one, at once: it is the one that is shown
        visit.until(_SAYS, "Seed 2, step 10")
        visit.page.wait_for_timeout(300)  # in which a film that goes on would err
        shown = visit.page.evaluate(_SHOWN, {"seed": 2, "steps": 10})
    assert shown["off"] < 1
    for found, edges in zip(shown["box"], shown["edges"], strict=True):
        inside = [min(max(edge, 0), 224) for edge in edges]
        assert found == pytest.approx(inside, abs=2)


def test_five_networks_speak_for_each_entry(site: str, opened: Open) -> None:
    moved = """async (seeds) => {
      const { table1 } = await import("/static/norms.js");
      const each = seeds.map((seed) => table1(seed).flatMap(({ entries }) => entries));
      return each.map((entries) => entries.filter((e) => !e.invariant).map((e) => e.moved));
    }"""
    with opened(site, "lab") as visit:
        first, second, others = visit.page.evaluate(moved, [0, 1, 5])
    assert len(first) == len(second) == 8
    # Of five networks each, the first two have four in common, and mostly the one that moves least.
    assert sum(a == b for a, b in zip(first, second, strict=True)) >= 3
    assert not set(first) & set(others)


def test_the_service_is_not_asked_to_compute(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        visit.page.wait_for_load_state("networkidle")  # its icon may come last
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(request.url))
        visit.press("#lab-compute")
        _slide(visit, 1, 1, -3)
        assert "18 of 18" in visit.text("#lab-verdict")
        assert [url for url in asked if "/static/lab/" not in url] == []


def test_how_far_padding_moves_each_row_is_told(site: str, opened: Open) -> None:
    z = torch.tensor(Z, dtype=torch.float64)
    padded = torch.cat([z, torch.zeros(2, 3, dtype=torch.float64)])
    moved = (per_column(padded)[: len(z)] - per_column(z)).abs().amax(1)
    with opened(site, "lab") as visit:
        visit["#lab-padding"].fill("2")
        assert visit.text("#lab-padded") == "2"
        told = [
            float(row.split("\u2007")[-1]) for row in visit["#lab-batch tr"].all_inner_texts()[:5]
        ]
        assert told == pytest.approx(moved.tolist(), abs=_SHOWN_DIGITS)
        assert f"by up to {moved.max():.2f}" in visit.text("#lab-batch-moved")


def test_the_bounds_and_the_time_are_told_as_they_are(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        bounds = visit.text("#lab-bounds")
        assert f"no output moves by more than {MOST_IF_INVARIANT:.1e} of the largest" in bounds
        assert f"one moves by more than {LEAST_IF_NOT:.1e} in each" in bounds
        visit.page.wait_for_timeout(1000)  # which is none of the time that it takes
        began_s = time.monotonic()
        visit.press("#lab-compute")
        took = re.search(r"in ([\d,]+) ms", visit.text("#lab-verdict"))
        assert took
        assert float(took[1].replace(",", "")) < 1000 * (time.monotonic() - began_s)


def test_a_digit_is_there_at_once_for_who_wants_no_motion(site: str, opened: Open) -> None:
    if not (plots.SHOWN / plots.DECODER).exists():
        pytest.skip("the laboratory has not trained what draws")
    with opened(site, "lab", reduced_motion="reduce") as visit:
        visit.page.evaluate(
            """() => {
              const every = setInterval;
              window.setInterval = (task, ms) => ((window.pause_ms = ms), every(task, ms));
            }"""
        )
        visit.press("#lab-draw")
        visit.until(_SAYS, "Seed 1, step 10")
        assert visit.page.evaluate("window.pause_ms") == 0


def test_of_a_digit_its_last_step_is_what_is_read_out(site: str, opened: Open) -> None:
    if not (plots.SHOWN / plots.DECODER).exists():
        pytest.skip("the laboratory has not trained what draws")
    with opened(site, "lab") as visit:
        visit.press("#lab-draw")
        visit.wait("#lab-drawn[aria-busy=true]")
        visit.until(_SAYS, "Seed 1, step 10")
        visit.wait("#lab-drawn[aria-busy=false]")


def test_what_draws_is_asked_for_again_where_it_was_lost(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        visit.page.route("**/draw-decoder.safetensors", lambda r: r.fulfill(status=503), times=1)
        visit.press("#lab-draw")
        visit.until(_SAYS, "What draws could not be fetched. The service answers 503.")
        visit.press("#lab-draw")
        visit.until(_SAYS, "Seed 1, step 10")
        visit.expect_error("503")
