"""The switch between the server and the visitor's device, where the static site has been built."""

from pathlib import Path

import pytest

from tests.page.conftest import Open

_BUILT = Path(__file__).parents[2] / "build" / "site" / "index.html"
_TEXT = "gone along"
_TYPED = "(text) => document.querySelector('#write-text').value === text"


@pytest.mark.skipif(not _BUILT.exists(), reason="the static site is not built; make site does that")
def test_what_was_typed_goes_along_to_the_device_and_back(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit["#write-text"].fill(_TEXT)
        visit["#write-bias"].fill("2.5")
        visit["#place a[href]"].click()
        visit.page.wait_for_url("**/static/device/?server#write")
        visit.until(_TYPED, _TEXT)
        assert visit.text("#write-neat") == "2.5"
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(request.url))
        visit.write(_TEXT)
        assert visit.ink("#write-sheet")
        assert not [url for url in asked if "/v1/" in url]
        visit["#place a[href]"].click()
        visit.page.wait_for_url(f"{handwriting}/#write")
        visit.until(_TYPED, _TEXT)


def test_the_words_of_ink_that_stays_behind_stay_with_it(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        brought = visit.page.evaluate(
            """async () => {
              const typed = { "draw-text": "hello", "write-text": "gone along" };
              sessionStorage.setItem("evenkeel-fields", JSON.stringify(typed));
              (await import("/static/place.js")).bringFields();
              return Object.keys(typed).map((id) => document.getElementById(id).value);
            }"""
        )
    assert brought == ["", "gone along"]


@pytest.mark.parametrize(
    ("field", "typed"),
    [("write-color", "#204060"), ("write-seed", "77"), ("write-thinning", "0.3")],
)
def test_what_was_chosen_goes_along_and_once(
    handwriting: str, opened: Open, field: str, typed: str
) -> None:
    with opened(handwriting, "write") as visit:
        brought = visit.page.evaluate(
            """async ([field, typed]) => {
              sessionStorage.setItem("evenkeel-fields", JSON.stringify({ [field]: typed }));
              (await import("/static/place.js")).bringFields();
              return [document.getElementById(field).value, sessionStorage.length];
            }""",
            [field, typed],
        )
    assert brought == [typed, 0]  # or it would be brought at each visit from now on


def test_what_a_browser_fills_in_again_is_told_beside_it(site: str, opened: Open) -> None:
    """By going back, which it does after the page has loaded and without an event of the field."""
    with opened(site, "text") as visit:
        told = visit.page.evaluate(
            """() => {
              document.querySelector("#text-temperature").value = "1.5";
              dispatchEvent(new PageTransitionEvent("pageshow"));
              return document.querySelector("#text-heat").value;
            }"""
        )
    assert told == "1.5"


@pytest.mark.parametrize(
    ("tab", "typed"),
    [
        ("write", {"#write-text": "typed by me", "#write-seed": "77"}),
        ("text", {"#text-prompt": "typed by me", "#text-length": "12"}),
        ("draw", {"#draw-next": "typed by me"}),
    ],
)
def test_who_comes_back_to_the_page_finds_what_was_typed(
    handwriting: str, opened: Open, tab: str, typed: dict[str, str]
) -> None:
    with opened(handwriting, tab) as visit:
        for field, text in typed.items():
            visit[field].fill(text)
        visit.page.goto(f"{handwriting}/docs")
        visit.page.go_back()
        visit.page.wait_for_load_state("networkidle")
        for field, text in typed.items():
            assert visit[field].input_value() == text


def test_the_other_place_is_gone_to_at_the_tab_that_is_shown(site: str, opened: Open) -> None:
    """And not with what a link asked to be written, which has been."""
    with opened(site, "lab") as visit:
        address = visit.page.evaluate(
            """async () => {
              const link = Object.assign(document.createElement("a"), { href: "elsewhere" });
              document.querySelector("#place").append(link);
              link.addEventListener("click", (event) => event.preventDefault());
              (await import("/static/place.js")).offerPlaces();
              history.replaceState(null, "", "#text?any=thing");
              link.click();
              sessionStorage.clear();
              return link.hash;
            }"""
        )
    assert address == "#text"
