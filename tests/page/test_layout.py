"""The layout: nothing is wider than the window; with `--screens DIR`, a picture of every tab."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.page.conftest import DRAWN, Open
from tests.page.visit import Strokes, Visit

_WEB = Path(__file__).parents[2] / "service" / "web"
_OF_ITS_OWN_REM = {74, 75}  # three tables of the lab beside each other; a header without its motto
_SIZES = {1280: 860, 390: 844, 360: 740}
_NOT_PICTURED = {360}

# Of the images that are on the screen.
_ALL_DRAWN = """() => [...document.images].every(image => {
    const { top, height } = image.getBoundingClientRect();
    return !image.offsetParent || top > innerHeight || top + height < 0 || image.complete;
})"""

Look = Callable[[Visit, str], None]


def test_scripts_and_styles_agree_on_what_little_room_is() -> None:
    narrow = re.search(r"max-width: (\d+)rem", (_WEB / "elements.js").read_text("utf-8"))
    assert narrow
    styles = "".join(sheet.read_text("utf-8") for sheet in _WEB.glob("*.css"))
    widths = {float(rem) for rem in re.findall(r"@media \(m\w+-width: ([\d.]+)rem\)", styles)}
    assert widths - _OF_ITS_OWN_REM == {int(narrow[1]), int(narrow[1]) + 0.01}


@pytest.fixture(params=_SIZES)
def window(request: pytest.FixtureRequest) -> dict[str, int]:
    """The size of a window."""
    return {"width": request.param, "height": _SIZES[request.param]}


@pytest.fixture
def look(window: dict[str, int], screens: Path | None) -> Look:
    """Looks at a tab: it must fit; and takes its picture."""

    def look(visit: Visit, tab: str) -> None:
        assert visit.too_wide_by() == 0
        width = window["width"]
        if screens and width not in _NOT_PICTURED:
            visit.page.wait_for_function(_ALL_DRAWN)
            name = f"page-{tab}.png" if width == max(_SIZES) else f"page-{tab}-{width}.png"
            visit.page.screenshot(path=screens / name)

    return look


def test_write_fits(handwriting: str, opened: Open, window: dict[str, int], look: Look) -> None:
    with opened(handwriting, "write", viewport=window) as visit:
        visit.write("What is served is the computation that was trained.", seed=5)
        look(visit, "write")
        visit["#write-panel summary"].click()
        assert visit.too_wide_by() == 0
        # As WCAG 2.5.8 has it: what is smaller is hard to hit. Of a slider that is the thumb.
        fields = visit["#write-panel form :is(textarea, select, input:not([type=range], .hand *))"]
        heights = fields.evaluate_all("fields => fields.map((field) => field.offsetHeight)")
        assert min(heights) >= 24, heights


def test_text_fits(site: str, opened: Open, window: dict[str, int], look: Look) -> None:
    with opened(site, "text", viewport=window) as visit:
        visit["#text-model"].select_option("shakespeare")
        visit["#text-prompt"].fill("ROMEO:\n")
        visit["#text-length"].fill("600")
        visit["#text-seed"].fill("2")
        visit.press("#text-start")
        visit.wait_done("text")
        look(visit, "text")


def test_draw_fits(
    handwriting: str, opened: Open, window: dict[str, int], look: Look, strokes: Strokes
) -> None:
    with opened(handwriting, "draw", viewport=window) as visit:
        visit.go_on_from(strokes, DRAWN, "and in all weathers")
        look(visit, "draw")


def test_proof_fits(site: str, opened: Open, window: dict[str, int], look: Look) -> None:
    with opened(site, "proof", viewport=window) as visit:
        look(visit, "proof")


def test_lab_fits(site: str, opened: Open, window: dict[str, int], look: Look) -> None:
    with opened(site, "lab", viewport=window) as visit:
        visit.press("#lab-compute")
        visit["#lab-padding"].fill("2")
        look(visit, "lab")


# Of each picture of a hand, by how many px its ink reaches over the edge of its tile.
_CUT_OFF = """async (images) => Promise.all(images.map(async (image) => {
    await image.decode();
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
    const brush = canvas.getContext("2d");
    brush.fillStyle = "white";
    brush.fillRect(0, 0, canvas.width, canvas.height);
    brush.drawImage(image, 0, 0);
    const dark = (x) => brush.getImageData(x, 0, 1, canvas.height).data
        .some((value, n) => n % 4 === 0 && value < 128);
    const columns = [...Array(canvas.width).keys()].filter(dark);
    const shown = image.getBoundingClientRect(), tile = image.parentElement.getBoundingClientRect();
    const scale = shown.width / canvas.width;
    if (Math.abs(shown.height - canvas.height * scale) > 1) return Infinity;  // cut to its box
    const left = shown.left + columns.at(0) * scale, right = shown.left + columns.at(-1) * scale;
    return Math.max(tile.left - left, right - tile.right);
}))"""


@pytest.mark.parametrize("width", [320, 600, 1280])
def test_all_that_a_hand_wrote_is_on_its_tile(handwriting: str, opened: Open, width: int) -> None:
    with opened(handwriting, "write", viewport={"width": width, "height": 860}) as visit:
        visit.wait("#write-hands .picture img >> nth=7")
        pictures = visit["#write-hands .picture img"]
        for picture in pictures.all():
            picture.scroll_into_view_if_needed()
        assert max(pictures.evaluate_all(_CUT_OFF)) < 0


@pytest.mark.parametrize("width", [320, 840, 1024, 1100])
def test_tables_of_the_lab_stay_in_their_columns(site: str, opened: Open, width: int) -> None:
    with opened(site, "lab", viewport={"width": width, "height": 860}) as visit:
        visit.wait(".trio table")
        wider = "tables => tables.map((t) => t.offsetWidth - t.parentElement.clientWidth)"
        assert max(visit[".trio table"].evaluate_all(wider)) <= 0


def test_the_header_fits_beside_the_choice_of_place(site: str, opened: Open) -> None:
    with opened(site, "lab") as visit:
        visit["#place"].evaluate("(place) => (place.hidden = false)")
        heights_px = set()
        for width in (834, 1024, 1180, 1280):
            visit.page.set_viewport_size({"width": width, "height": 860})
            assert visit.too_wide_by() == 0
            heights_px.add(visit["header"].bounding_box()["height"])
        assert len(heights_px) == 1  # nothing in it is broken into lines
