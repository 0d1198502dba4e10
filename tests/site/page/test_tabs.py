"""The tabs of the site, each computed by the browser alone."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.page.visit import Strokes
from tests.site.page.conftest import OpenSite

_DRAWN = Path(__file__).parents[3] / "build" / "drawn"
_SVG_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def _sample(model: str) -> dict[str, Any]:
    """What the service drew when the site was built."""
    sample: dict[str, Any] = json.loads((_DRAWN / f"{model}.json").read_text())
    return sample


def _numbers(data: str) -> list[float]:
    return [float(number) for number in _SVG_NUMBER.findall(data)]


def test_a_seeded_sentence_is_written_as_the_service_writes_it(opened: OpenSite) -> None:
    sample = _sample("handwriting")
    request, answer = sample["request"], sample["answer"]
    strokes = [stroke for line in answer["lines"] for stroke in line["strokes"]]
    with opened("write", viewport={"width": 2000, "height": 900}) as visit:
        visit["#write-panel summary"].click()
        visit["#write-thinning"].fill("0")  # a path for each stroke
        visit.write(request["text"], seed=request["seed"])
        assert visit.text("#write-progress").endswith(f"seed {request['seed']}")
        ours = visit.ink("#write-sheet")
        assert len(ours) == len(strokes)
        for data, stroke in zip(ours, strokes, strict=True):
            ends = np.array(_numbers(data)).reshape(-1, 2)[[0, -1]]
            np.testing.assert_allclose(ends, [stroke[0], stroke[-1]], atol=0.1)


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_ink_is_saved(opened: OpenSite, kind: str) -> None:
    with opened("write") as visit:
        visit.write("Fair winds", seed=11)
        with visit.page.expect_download() as download:
            visit.press(f"#write-{kind}")
        assert download.value.suggested_filename == f"evenkeel-11.{kind}"
        content = Path(download.value.path()).read_bytes()
        if kind == "png":
            assert content.startswith(b"\x89PNG")
            return
        drawn = visit.ink("#write-sheet")
        saved = re.findall(r'<path d="([^"]+)"', content.decode())
        for theirs, data in zip(saved, drawn, strict=True):
            assert _numbers(theirs) == pytest.approx(_numbers(data), abs=0.05)


def test_a_stop_ends_the_pen_and_another_sentence_is_written(opened: OpenSite) -> None:
    with opened("write") as visit:
        visit.proved()
        visit.begin_writing("a long sentence that nobody waits for", speed="0.5", seed=None)
        visit.wait("#write-sheet path", "attached")
        visit.page.keyboard.press("Escape")
        visit.wait_done("write")
        assert visit.text("#write-progress").startswith("Stopped")
        visit.write("anew")
        assert visit.text("#write-progress").startswith("4 characters")


def test_what_cannot_be_written_is_said_in_words(opened: OpenSite) -> None:
    with opened("write") as visit:
        visit["#write-text"].fill("\u6f22 caf\u00e9 \u0436")
        visit.wait("#write-wrong")
        assert visit.text("#write-wrong") == "The pen cannot write \u6f22  \u0436"


def test_a_text_is_read_and_gone_on_with_as_the_service_does(opened: OpenSite) -> None:
    sample = _sample("shakespeare")
    request, written = sample["request"], sample["answer"]["choices"][0]["text"]
    with opened("text") as visit:
        visit["#text-prompt"].fill(request["prompt"])
        visit["#text-length"].fill("150")
        visit["#text-seed"].fill(str(request["seed"]))
        visit["#text-temperature"].fill(str(request["temperature"]))
        visit.press("#text-start")
        visit.wait_done("text")
        assert visit.text("#text-passage") == request["prompt"] + written[:150]
        visit.press("#text-goon")
        visit.wait_done("text")
        assert visit.text("#text-passage") == request["prompt"] + written[:300]
        assert visit["#text-passage [data-chance]"].count() == 300


def _waves(count: int) -> Strokes:
    """Some strokes on the line of the pad, as large as letters."""
    t = np.linspace(0, 2 * np.pi, 24)
    return [
        [(30 + 22 * n + 12 * np.sin(a) * 0.6, 118 - 14 * np.cos(a)) for a in t.tolist()]
        for n in range(count)
    ]


def test_a_drawn_hand_is_gone_on_with_and_kept(opened: OpenSite) -> None:
    with opened("draw") as visit:
        visit.proved()
        visit["#draw-text"].fill("oooo")
        visit["#draw-next"].fill("we sail")
        visit.scribble(_waves(4))
        visit.wait("#draw-pad .shade ellipse", "attached")
        assert "The pen lifts there with" in visit.text("#draw-expected")
        visit.press("#draw-start")
        visit.wait_done("draw")
        assert visit["#draw-sheet"].get_attribute("aria-label") == "Handwriting: we sail"
        visit.press("#draw-use")
        visit.wait("#write-panel")
        assert visit["#write-hands label:has(:checked)"].text_content() == "My hand"
        visit.write("ho")
        assert visit.ink("#write-sheet")


def test_a_sample_is_drawn_once_however_often_proof_is_shown(opened: OpenSite) -> None:
    watch = """() => {
      window.asked = [];
      const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (message) {
        if (message.asks) asked.push(message.asks.path);
        return postMessage.call(this, message);
      };
    }"""
    with opened("write") as visit:
        visit.proved()
        visit.page.evaluate(watch)
        for tab in ("proof", "lab", "proof"):
            visit[f"#{tab}-tab"].click()
        visit.wait("#proof-models .verdict:has-text('drawn by the server')")
        visit.page.wait_for_timeout(500)
        asked = visit.page.evaluate("asked")
    assert asked.count("/v1/models/handwriting/attest") == 1


def test_proof_shows_the_verdict_of_this_browser(opened: OpenSite) -> None:
    with opened("write") as visit:
        visit.proved()
        visit["#proof-tab"].click()
        card = "#proof-models article:has(#proof-of-handwriting)"
        visit.until(f"() => document.querySelector('{card} p:nth-of-type(2)').textContent")
        runtime = visit.text(f"{card} dl")
        assert "wasm-ort1.30" in runtime
        # The site reckons the digest anew; the service's fingerprint begins with its own.
        assert _sample("handwriting")["answer"]["system_fingerprint"].partition("-")[0] in runtime
        verdict, sample = visit[f"{card} .verdict"].all_text_contents()[:2]
        assert re.match(r"Attested on this machine: 640 steps replayed at ", verdict)
        found = re.match(r"([\d,]+) of ([\d,]+) points drawn by the server \((.*)\)", sample)
        assert found
        assert found[1] == found[2]
        assert found[3] == _sample("handwriting")["runtime"]
        # A model that nobody has asked for yet comes when it is to be checked.
        other = "#proof-models article:has(#proof-of-shakespeare)"
        assert "have not been fetched" in visit.text(f"{other} .verdict")
        visit.press(f"{other} button")
        visit.until(f"() => /bytes drawn by/.test(document.querySelector('{other}').textContent)")
        assert "1,000 of 1,000 bytes drawn by the server" in visit.text(other)


@pytest.mark.parametrize("tab", ["write", "text", "draw", "proof"])
def test_the_tabs_fit_a_phone(opened: OpenSite, tab: str, pictures: Path | None) -> None:
    with opened(tab, **_PHONE) as visit:
        if tab == "write":
            visit.write("Steady as she goes", seed=5)
        assert visit.too_wide_by() == 0
        if pictures and tab == "write":
            visit.page.screenshot(path=pictures / "site-write-390.png")
