"""Nobody is left out: by axe, in colours of one's own, and without JavaScript."""

from typing import Any

import pytest

from tests.page.answers import HEAD, USAGE, ink, stream
from tests.page.conftest import DRAWN, Open
from tests.page.visit import Strokes, Visit

_TABS = ["write", "text", "draw", "proof", "lab"]
_PHONE = {"width": 390, "height": 844}
# The shares of red, green and blue of a computed colour, its alpha apart.
_CONTRAST = """([selector, of]) => {
  const luminance = (color) => {
    const shares = color.match(/[\\d.]+/g).slice(0, 3).map((share) => share / 255);
    const linear = shares.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const look = getComputedStyle(document.querySelector(selector));
  const [a, b] = [look[of], look.backgroundColor].map(luminance);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""


def _violations(visit: Visit) -> list[str]:
    """What axe objects to: the rule, and where."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    found = axe.Axe().run(visit.page).response
    # With nothing looked at nothing would be found.
    assert len(found["passes"]) > 10
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def _use(visit: Visit, tab: str, strokes: Strokes) -> None:
    """Have on a tab all that can stand there."""
    if tab == "write":
        visit["#write-panel summary"].click()
        visit.write("all hands")
        visit.write("on deck")
        visit["#write-text"].fill("\u6f22 and more")
        visit.wait("#write-wrong")
        visit.wait("#write-stale")
    if tab == "text":
        visit["#text-length"].fill("300")
        visit.press("#text-start")
        visit.wait_done("text")
    if tab == "draw":
        visit.go_on_from(strokes, DRAWN, "we sail")
        visit["#draw-next"].fill("and more")
    if tab == "lab":
        visit.press("#lab-compute")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("tab", _TABS)
def test_axe_finds_nothing(
    handwriting: str, opened: Open, strokes: Strokes, tab: str, scheme: str
) -> None:
    with opened(handwriting, tab, color_scheme=scheme) as visit:
        assert _violations(visit) == []
        _use(visit, tab, strokes)
        assert _violations(visit) == []


@pytest.mark.parametrize("tab", _TABS)
def test_axe_finds_nothing_on_a_phone(handwriting: str, opened: Open, tab: str) -> None:
    with opened(handwriting, tab, viewport=_PHONE) as visit:
        assert _violations(visit) == []


def test_axe_would_find_something(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.page.evaluate("() => (document.querySelector('#write-keys').style.color = '#aaa')")
        visit.page.evaluate("() => document.querySelector('[for=write-text]').remove()")
        assert {found.partition(":")[0] for found in _violations(visit)} >= {"color-contrast"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ink_is_seen_in_colours_of_ones_own(handwriting: str, opened: Open, scheme: str) -> None:
    colors: dict[str, Any] = {"forced_colors": "active", "color_scheme": scheme}
    with opened(handwriting, "write", **colors) as visit:
        visit.write("dark on light")
        for sheet in ("#write-sheet", ".hand .made"):
            of = "stroke" if sheet == "#write-sheet" else "color"
            assert visit.page.evaluate(_CONTRAST, [sheet, of]) > 4.5
        edges = [
            visit[f"#{tab}-tab"].evaluate("(tab) => getComputedStyle(tab).borderBottomColor")
            for tab in ("write", "draw")
        ]
        assert edges[0] != edges[1]


def test_without_javascript_there_is_the_ink_and_a_word(handwriting: str, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(handwriting)
    notice, service = page.locator("noscript .error").all()
    assert "needs JavaScript" in notice.text_content()
    assert notice.is_visible()
    assert notice.bounding_box()["y"] < 300
    assert "/v1/handwriting" in service.text_content()
    assert page.locator("#write-opening").is_visible()
    context.close()


@pytest.mark.parametrize(
    ("tab", "field", "said"),
    [("write", "#write-bias", "#verdict"), ("lab", "#lab-padding", "#lab-layer-moved")],
)
def test_what_is_said_already_is_not_said_again(
    handwriting: str, opened: Open, tab: str, field: str, said: str
) -> None:
    """A screen reader reads out a status whose text is replaced, by the same too."""
    with opened(handwriting, tab) as visit:
        visit.until("(said) => document.querySelector(said).classList.contains('good')", said)
        changes = visit.page.evaluate(
            """async ([field, said]) => {
              let changes = 0;
              const watch = new MutationObserver((seen) => (changes += seen.length));
              watch.observe(document.querySelector(said), { childList: true });
              for (const name of ["input", "change"]) {
                document.querySelector(field).dispatchEvent(new Event(name, { bubbles: true }));
              }
              await new Promise((seen) => setTimeout(seen));
              return changes;
            }""",
            [field, said],
        )
    assert changes == 0


def test_what_comes_by_itself_is_said(site: str, opened: Open) -> None:
    """By a screen reader: errors at once, how far a task has come when there is a pause."""
    said = {"error": "alert", "progress": "status", "wrong": "status", "stale": "status"}
    with opened(site, "lab") as visit:
        for name, role in said.items():
            found = visit[f"p.{name}:not(noscript *)"].all()
            assert found
            assert {element.get_attribute("role") for element in found} == {role}, name
        for note in ("verdict", "lab-verdict", "lab-layer-moved", "lab-batch-moved", "lab-drawn"):
            assert visit[f"#{note}"].get_attribute("role") == "status", note


@pytest.mark.parametrize("field", ["write-text", "text-prompt", "draw-next"])
def test_a_field_says_which_keys_it_hears(site: str, opened: Open, field: str) -> None:
    with opened(site, "lab") as visit:
        keys = f"{field.partition('-')[0]}-keys"
        assert keys in visit[f"#{field}"].get_attribute("aria-describedby").split()


def test_what_the_keyboard_is_at_is_seen(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        visit["#text-tab"].focus()
        for _ in range(8):
            visit.page.keyboard.press("Tab")
            style = "getComputedStyle(document.activeElement).outlineStyle"
            assert visit.page.evaluate(style) == "solid"


# What has the focus, if its middle is in the window and something of another place lies over it.
_COVERED = """() => {
  const at = document.activeElement;
  const { left, top, width, height } = at.getBoundingClientRect();
  const [x, y] = [left + width / 2, top + Math.min(height / 2, 20)];
  const over = document.elementFromPoint(x, y)?.closest(".actions");
  return over && !over.contains(at) ? at.id || at.value : null;
}"""


@pytest.mark.parametrize("size", [(320, 256), (320, 568), (1280, 720)])
def test_what_the_keyboard_is_at_is_not_behind_the_buttons(
    handwriting: str, opened: Open, size: tuple[int, int]
) -> None:
    """They stand over what is scrolled: at the foot of a narrow window, as at a zoom of 400 %."""
    viewport = dict(zip(("width", "height"), size, strict=True))
    with opened(handwriting, "write", viewport=viewport, reduced_motion="reduce") as visit:
        visit.write("all hands")
        visit["#write-panel summary"].click()
        for tab in ("write", "draw", "text"):
            visit[f"#{tab}-tab"].click()
            for key in ("Tab", "Shift+Tab"):
                for _ in range(30):
                    visit.page.keyboard.press(key)
                    assert visit.page.evaluate(_COVERED) is None, (tab, key)


def test_a_sheet_that_comes_leaves_the_keyboard_where_it_was(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "lab") as visit:
        visit.page.route("**/v1/handwriting", lambda r: r.fulfill(**stream(HEAD, ink(9), USAGE)))
        visit["#write-tab"].click()
        for seed in (1, 2):
            visit.write("ho", seed=seed)
        visit["#write-sheets button"].last.focus()
        visit.page.keyboard.press("Control+Enter")
        visit.until("() => document.querySelectorAll('#write-sheets li').length === 3")
        held = "document.activeElement === document.querySelector('#write-sheets li:last-child *')"
        assert visit.page.evaluate(held)


def test_fingers_draw_on_the_pad_and_zoom_into_no_field(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw", viewport=_PHONE) as visit:
        look = "(element) => [getComputedStyle(element)].map((s) => [s.touchAction, s.fontSize])[0]"
        assert visit["#draw-pad"].evaluate(look)[0] == "none"  # or the page would scroll
        # Into one whose letters are smaller a phone zooms.
        sizes = [field.evaluate(look)[1] for field in visit["textarea, select, input"].all()]
        assert min(float(size.removesuffix("px")) for size in sizes) >= 16
