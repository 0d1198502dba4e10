"""The Text tab: text tinted by its probability, gone on with, stopped."""

import json
import re
import time
from typing import Any
from urllib.request import Request, urlopen

from tests.page.conftest import Open
from tests.page.visit import Visit

_MODEL, _OTHER = "shakespeare", "shakespeare-int8"
_LOGPROBS = {
    "tokens": ["bytes:\\xc3"] * 3, "token_logprobs": [-1.0] * 3, "text_offset": [0, 0, 1],
}  # fmt: skip
# A character of two bytes and a byte that is no character, which is three bytes in UTF-8.
_NO_UTF8 = {
    "seed": 5,
    "choices": [{"index": 0, "text": "\u00e9\ufffd", "logprobs": _LOGPROBS, "finish_reason": None}],
}


def _complete(visit: Visit, prompt: str, length: int, seed: int | None = 4) -> None:
    visit["#text-model"].select_option(_MODEL)
    visit["#text-prompt"].fill(prompt)
    visit["#text-length"].fill(str(length))
    visit["#text-seed"].fill("" if seed is None else str(seed))
    visit.press("#text-start")
    visit.wait_done("text")


def _completion(site: str, **body: object) -> dict[str, object]:
    data = json.dumps({"model": _MODEL, "temperature": 0.6} | body).encode()
    headers = {"content-type": "application/json"}
    with urlopen(Request(f"{site}/v1/completions", data, headers)) as answer:
        choice: dict[str, object] = json.load(answer)["choices"][0]
        return choice


def test_each_character_is_tinted_and_says_its_probability(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        _complete(visit, "ROMEO:", 200)
        letters = visit["#text-passage [data-chance]"]
        assert letters.count() == 200
        tints = set(letters.evaluate_all("spans => spans.map((span) => span.className)"))
        assert tints >= {"likely0", "likely1", "likely2", "likely3"}
        assert re.fullmatch(r".+: [\d.e-]+ %", letters.first.get_attribute("title"), re.DOTALL)
        seen = letters.filter(has_text=re.compile(r"\w")).last
        seen.hover()
        assert visit.text("#text-letter") == seen.get_attribute("title")
        grounds = letters.evaluate_all(
            "spans => new Set(spans.map((s) => getComputedStyle(s).backgroundColor)).size"
        )
        assert grounds >= 4


def test_the_keyboard_goes_from_one_character_to_the_next(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        _complete(visit, "ROMEO:", 6)
        letters = visit["#text-passage [data-chance]"]
        visit["#text-paper"].focus()
        for key, told in (
            ("ArrowLeft", 5), ("ArrowLeft", 4), ("ArrowRight", 5), ("ArrowRight", 5),
            *[("ArrowLeft", place) for place in (4, 3, 2, 1, 0, 0)],
        ):  # fmt: skip
            visit.page.keyboard.press(key)
            assert visit.text("#text-letter") == letters.nth(told).get_attribute("title")
            assert visit["#text-passage .told"].count() == 1
            assert "told" in letters.nth(told).get_attribute("class")
        visit.page.keyboard.press("Alt+ArrowRight")  # is the browser's
        assert "told" in letters.first.get_attribute("class")
        _complete(visit, "JULIET:", 6)
        assert visit.text("#text-passage").startswith("JULIET:")
        visit["#text-paper"].focus()
        visit.page.keyboard.press("ArrowRight")
        assert visit.text("#text-letter") == letters.first.get_attribute("title")


def test_the_page_shows_what_the_service_says(site: str, opened: Open) -> None:
    choice = _completion(site, prompt="ROMEO:", max_tokens=120, seed=4, logprobs=1)
    logprobs = choice["logprobs"]["token_logprobs"]  # type: ignore[index]
    with opened(site, "text") as visit:
        began_s = time.monotonic()
        _complete(visit, "ROMEO:", 120)
        assert visit.text("#text-passage") == f"ROMEO:{choice['text']}"
        assert "".join(visit["#text-passage .prompt"].all_text_contents()) == "ROMEO:"
        mean = re.search(r"mean ([\d.]+) bits per byte", visit.text("#text-progress"))
        assert mean
        took = re.search(
            r"Wrote 120 bytes in ([\d.]+) s: ([\d,]+) bytes/s", visit.text("#text-progress")
        )
        assert took
        assert 0 < float(took[1]) < time.monotonic() - began_s
        # Seconds are rounded to two digits, bytes to none.
        least_s, most_s = float(took[1]) - 0.0051, float(took[1]) + 0.0051
        speed = float(took[2].replace(",", ""))
        assert 120 / most_s - 1 < speed
        assert least_s < 0 or speed < 120 / least_s + 1
        assert abs(float(mean[1]) + sum(logprobs) / len(logprobs) / 0.693147) < 0.0051


def test_a_text_that_took_no_time_has_no_pace(site: str, opened: Open) -> None:
    """By the clock of a browser that tells a page tenths of a second."""
    with opened(site, "text") as visit:
        visit.page.evaluate("() => { performance.now = () => 1000; }")
        _complete(visit, "ROMEO:", 1)
        assert visit.text("#text-progress").splitlines()[0] == "Wrote 1 byte in 0.00 s"


def test_go_on_continues_where_the_text_ended(site: str, opened: Open) -> None:
    whole = _completion(site, prompt="KING", max_tokens=120, seed=4)["text"]
    with opened(site, "text") as visit:
        _complete(visit, "KING", 60)
        visit.press("#text-goon")
        visit.until("() => document.querySelectorAll('[data-chance]').length === 120")
        visit.wait_done("text")
        assert visit.text("#text-passage") == f"KING{whole}"


def _stopped(visit: Visit) -> str:
    """What a long text has come to when it is stopped."""
    visit["#text-model"].select_option(_MODEL)
    visit["#text-length"].fill("60000")
    visit.press("#text-start")
    visit.wait("#text-passage [data-chance] >> nth=50", "attached")
    visit.page.keyboard.press("Escape")
    visit.wait_done("text")
    return visit.text("#text-passage")


def test_what_was_stopped_can_be_gone_on_with(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        visit["#text-seed"].fill("9")
        stopped = _stopped(visit)
        assert visit.text("#text-progress").startswith("Stopped after")
        visit["#text-length"].fill("40")
        visit.press("#text-goon")
        visit.wait_done("text")
        went_on = visit.text("#text-passage")
        assert len(went_on) == len(stopped) + 40
        expected = _completion(site, prompt="", max_tokens=len(went_on), seed=9)["text"]
        assert went_on == expected
        # Nothing is left of the lines that were there before.
        lines = visit["#text-passage .line"].all_text_contents()
        assert lines == expected.splitlines(keepends=True)
        visit.press("#text-goon")
        visit.wait_done("text")
        further = visit.text("#text-passage")
        assert len(further) == len(went_on) + 40
        assert further.startswith(went_on)


def test_a_passage_is_of_the_model_that_wrote_it(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        held: list[Any] = []
        visit.page.route("**/v1/completions", lambda route: held.append(route), times=1)
        visit["#text-model"].select_option(_MODEL)
        visit["#text-prompt"].fill("KING")
        visit["#text-length"].fill("20")
        visit["#text-temperature"].fill("1.5")
        visit.press("#text-start")
        visit.wait("#text-passage[aria-busy=true]", "attached")
        visit["#text-model"].select_option(_OTHER)
        assert held[0].request.post_data_json["temperature"] == 1.5
        held[0].continue_()
        visit.wait_done("text")
        assert visit["#text-goon"].get_attribute("aria-disabled") == "true"
        visit["#text-model"].select_option(_MODEL)
        visit.press("#text-goon")
        visit.wait_done("text")


def test_a_long_line_takes_no_longer_than_lines(site: str, opened: Open) -> None:
    """To look at all of a line for each of its letters is a page that stands still for seconds."""
    with opened(site, "text") as visit:
        lines, line = visit.page.evaluate(
            """async () => {
              const { Letters } = await import("/static/letters.js");
              return [`${"a".repeat(99)}\\n`.repeat(200), "a".repeat(20_000)].map((text) => {
                const began = performance.now();
                new Letters(document.createElement("div")).append({ text });
                return performance.now() - began;
              });
            }"""
        )
    assert line < 10 * lines


def test_a_prompt_is_in_one_piece_a_line_and_gone_on_with_in_its_last(
    site: str, opened: Open
) -> None:
    """In a line of many pieces each letter that came kept the page for a while."""
    with opened(site, "text") as visit:
        _complete(visit, f"<i>ROMEO:</i>\n\n{'oh ' * 30}", 3)
        pieces = visit["#text-passage .prompt"].all_text_contents()
        assert pieces == ["<i>ROMEO:</i>\n", "\n", "oh " * 30]
        assert visit["#text-passage .line >> nth=2"].locator("[data-chance]").count() > 0
        _complete(visit, "ROMEO:\n", 3)  # whose last line is over
        assert visit["#text-passage .line >> nth=0"].locator("[data-chance]").count() == 0


def test_what_is_no_character_is_counted_in_bytes(site: str, opened: Open) -> None:
    def answer(route: Any) -> None:
        if (body := route.request.post_data_json)["stream"]:
            # No end mark: the connection breaks off.
            route.fulfill(
                content_type="text/event-stream", body=f"data: {json.dumps(_NO_UTF8)}\n\n"
            )
        else:
            asked.append((body["max_tokens"], body["seed"]))
            route.fulfill(status=503, body="{}")

    asked: list[tuple[int, int]] = []
    with opened(site, "text") as visit:
        visit.page.route("**/v1/completions", answer)
        visit.press("#text-start")
        visit.wait("#text-error")
        assert visit.text("#text-progress").startswith("Stopped after 3 bytes")
        visit.press("#text-goon")
        visit.until("() => document.querySelector('#text-error').innerText.includes('503')")
        visit.expect_error("503")
    assert asked == [(3, 5)]


def test_a_model_that_has_changed_does_not_go_on_with_a_text(site: str, opened: Open) -> None:
    def of_another(route: Any) -> None:
        answer = route.fetch()
        told = answer.json() | {"system_fingerprint": "other"}
        route.fulfill(response=answer, json=told)

    with opened(site, "text") as visit:
        stopped = _stopped(visit)
        visit.page.route("**/v1/completions", of_another, times=1)
        visit.press("#text-goon")
        visit.wait("#text-error")
        assert "another model" in visit.text("#text-error")
        assert visit.text("#text-passage") == stopped


def test_a_character_is_told_by_name_and_chance_and_tinted_as_the_legend_says(
    site: str, opened: Open
) -> None:
    chances = [0.6, 0.3, 0.1, 0.02, 0.001, 0.5, 0.2]
    with opened(site, "text") as visit:
        told = visit.page.evaluate(
            """async (chances) => {
              const { Letters } = await import("/static/letters.js");
              const paper = document.createElement("div");
              const logprobs = {
                text_offset: [0, 1, 2, 3, 4, 5, 5],  // of the last character two bytes
                token_logprobs: chances.map(Math.log),
              };
              new Letters(paper).append({ text: "a\\n\\t bc", logprobs });
              return [...paper.querySelectorAll("span")].map((s) => [s.title, s.className]);
            }""",
            chances,
        )
    assert told == [
        ["a: 60 %", "likely0"], ["line break: 30 %", "likely1"], ["tab: 10 %", "likely2"],
        ["space: 2 %", "likely3"], ["b: 0.1 %", "likely4"], ["c: 10 %", "likely2"],
    ]  # fmt: skip


def test_a_model_that_answers_as_another_is_looked_at_again(site: str, opened: Open) -> None:
    def as_another(route: Any) -> None:
        answer = route.fetch()
        body = re.sub(
            r'"system_fingerprint": ?"[^"]*"', '"system_fingerprint": "other"', answer.text()
        )
        route.fulfill(response=answer, body=body)

    with opened(site, "text") as visit:
        visit.page.route("**/v1/completions", as_another)
        with visit.page.expect_request(f"**/v1/models/{_MODEL}"):
            _complete(visit, "ROMEO:", 5)


def test_one_byte_is_no_bytes(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        visit["#text-length"].fill("1")
        visit.press("#text-start")
        visit.wait_done("text")
        assert visit.text("#text-progress").startswith("Wrote 1 byte in ")


def test_the_facts_are_of_the_model_that_is_chosen(site: str, opened: Open) -> None:
    def larger(route: Any) -> None:
        told = route.fetch().json()
        for model in told["data"]:
            model["parameters"] = 1234 if model["id"] == _OTHER else 5678
        route.fulfill(json=told)

    with opened(site, "lab") as visit:
        visit.page.route("**/v1/models", larger)
        visit.go("text")
        for model, parameters in ((_OTHER, "1,234"), (_MODEL, "5,678")):
            visit["#text-model"].select_option(model)
            assert f"{parameters} parameters" in visit.text("#text-facts")


def test_a_text_stays_where_the_next_is_refused(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        _complete(visit, "ROMEO:", 6)
        written = visit.text("#text-passage")
        visit.page.route("**/v1/completions", lambda route: route.fulfill(status=503, json={}))
        visit.press("#text-start")
        visit.wait("#text-error")
        assert visit.text("#text-passage") == written
        visit.page.unroute("**/v1/completions")
        visit.press("#text-goon")
        visit.wait_done("text")
        assert len(visit.text("#text-passage")) == len(written) + 6
        visit.expect_error("503")


def test_what_was_gone_on_with_and_stopped_again_can_be_gone_on_with(
    site: str, opened: Open
) -> None:
    """Its bytes are asked for again from the state that it went on from, which has a seed."""
    with opened(site, "text") as visit:
        visit["#text-seed"].fill("9")
        stopped = _stopped(visit)
        visit.press("#text-goon")
        more = "(n) => document.querySelectorAll('[data-chance]').length > n"
        visit.until(more, len(stopped) + 50)
        visit.page.keyboard.press("Escape")
        visit.wait_done("text")
        visit["#text-length"].fill("40")
        visit.press("#text-goon")
        visit.wait_done("text")
        written = visit.text("#text-passage")
    assert written == _completion(site, prompt="", max_tokens=len(written), seed=9)["text"]


def test_what_comes_and_what_is_told_of_are_in_sight(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        _complete(visit, "a    b", 1500)
        assert visit["#text-passage"].inner_text().startswith("a    b")  # as many as were typed
        letters = visit["#text-passage [data-chance]"]
        visit["#text-paper"].focus()
        paper = visit["#text-paper"].bounding_box()

        def in_sight(letter: Any) -> bool:
            top: float = letter.bounding_box()["y"]
            return bool(paper["y"] <= top < paper["y"] + paper["height"])

        assert in_sight(letters.last)
        assert not in_sight(letters.first)
        visit.page.keyboard.press("ArrowRight")
        assert in_sight(letters.first)
        assert letters.first.evaluate("(s) => getComputedStyle(s).outlineStyle") == "solid"


def test_the_size_of_a_model_is_told_as_it_is(site: str, opened: Open) -> None:
    with urlopen(f"{site}/v1/models/{_MODEL}") as answer:
        network = json.load(answer)["hyperparameters"]
    with opened(site, "text") as visit:
        visit["#text-model"].select_option(_MODEL)
        said = f"{network['layers']} \u00d7 {network['units']} units"
        assert said in visit.text("#text-facts")
