"""Previews of stored hands: a line each, drawn once, by the model whose hand it is."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from service.catalogue import Models
from service.errors import Overloaded
from service.ink import styles
from service.ink.line import InkLine
from service.ink.measure import Measures
from service.shared import Shared
from tests.artifacts import HANDS
from tests.service.serving import Service, running, settings
from tests.service.writing import InkService


def _refusal(response: Any) -> dict[str, Any]:
    assert response.status_code == 404, response.text
    return response.json()["error"]


def test_a_preview_is_always_the_same_drawing(ink: InkService) -> None:
    previews = []
    for style in ink.client.get("/v1/styles").json()["data"]:
        answer = ink.client.get(style["preview"])
        assert answer.headers["content-type"].startswith("image/svg+xml")
        # Not by a proxy, which may not ask whoever comes next for a key.
        assert answer.headers["cache-control"] == "private, max-age=3600"
        assert any(p.tag.endswith("path") for p in ElementTree.fromstring(answer.content).iter())
        assert ink.client.get(style["preview"]).content == answer.content
        previews.append(answer.content)
    assert len(set(previews)) == len(HANDS)


def test_a_preview_is_the_most_legible_of_four_draws(ink: InkService) -> None:
    first = 0
    for style in ink.client.get("/v1/styles").json()["data"]:
        preview = ink.client.get(style["preview"]).text
        width = float(ElementTree.fromstring(preview).get("width", 0))
        asked = {"text": "an even keel", "style": style["id"], "seed": 1, "width": width}
        best = ink.post(**asked, line_height=56, best_of=4).text
        assert preview == best
        first += best == ink.post(**asked, line_height=56).text
    assert first < len(HANDS)  # else nothing was chosen


def test_a_preview_is_one_line_however_wide_the_hand(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn() -> ElementTree.Element:
        return ElementTree.fromstring(ink.client.get("/v1/styles/upright/preview.svg").content)

    model = ink.app.state.models["scrawl"]
    usual = drawn()
    upright = model.styles["upright"]
    wide = upright.edge.model_copy(update={"advance": 3 * model.manifest.ink.units_per_character})
    monkeypatch.setitem(model.styles, "upright", replace(upright, edge=wide))
    monkeypatch.setattr(model, "previews", {})
    # A line of 56 px and half of one over and under it.
    assert drawn().get("height") == usual.get("height") == "112"
    assert float(drawn().get("width", 0)) > float(usual.get("width", 0))


def test_a_preview_is_drawn_once_for_everybody_and_again_when_its_judge_is_another(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn() -> tuple[str, float]:
        before = ink.metric("steps_total", model="scrawl")
        text = ink.client.get("/v1/styles/hasty/preview.svg").text
        return text, ink.metric("steps_total", model="scrawl") - before

    chosen, _ = drawn()
    assert drawn() == (chosen, 0)
    monkeypatch.setattr("service.ink.styles.only_judge", lambda models: None)
    unchosen, steps = drawn()
    assert steps > 0
    assert unchosen == drawn()[0]
    monkeypatch.undo()
    again, steps = drawn()
    assert again == chosen
    assert steps > 0


@pytest.mark.parametrize("style", ["nobody", "..%2Fupright", "%F0%9F%A6%8A"])
def test_a_preview_of_nobody_is_a_404_that_names_those_there_are(
    ink: InkService, style: str
) -> None:
    error = _refusal(ink.client.get(f"/v1/styles/{style}/preview.svg"))
    if "%2F" not in style:
        assert (error["code"], error["param"]) == ("style_not_found", "style")
        assert error["message"].endswith("this service has: upright, hasty")


@pytest.fixture(scope="module")
def twins(
    in_both: Callable[[str, Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service with a pen in both precisions, whose hands have the same names."""
    with running(settings(in_both("scrawl", tmp_path_factory.mktemp("twins")))) as service:
        yield service


def test_a_preview_is_drawn_by_the_model_that_lists_it(twins: Service) -> None:
    listed = twins.client.get("/v1/styles").json()["data"]
    assert [style["model"] for style in listed] == ["scrawl"] * 2 + ["scrawl-int8"] * 2
    assert len({style["preview"] for style in listed}) == 4
    drawn = []
    for style in listed:
        preview = twins.client.get(style["preview"]).text
        width = float(ElementTree.fromstring(preview).get("width", 0))
        asked = {"text": "an even keel", "seed": 1, "width": width, "line_height": 56}
        whose = {"style": style["id"], "model": style["model"]}
        assert preview == twins.client.post("/v1/handwriting", json=asked | whose).text
        drawn.append(preview)
    assert len(set(drawn)) == 4


def test_what_each_of_two_pens_wrote_is_counted_of_that_pen(
    twins: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their hands are measured side by side, for one request."""
    before = _ended(twins)
    for pen in twins.app.state.models:
        monkeypatch.setattr(pen, "looks", {})
    assert twins.client.get("/v1/styles").status_code == 200
    assert _ended(twins) - before == {"scrawl": 2, "scrawl-int8": 2}


def _ended(service: Service) -> Counter[str]:
    """Lines that have ended, by model, as the metrics tell it."""
    (family,) = service.app.state.metrics.finished.collect()
    ended: Counter[str] = Counter()
    for sample in family.samples:
        if sample.name.endswith("_total"):
            ended[sample.labels["model"]] += int(sample.value)
    return ended


def test_a_hand_that_two_models_have_is_named_once_where_another_is_wanted(twins: Service) -> None:
    for query, whose in (("", "this service"), ("?model=scrawl-int8", "model 'scrawl-int8'")):
        error = _refusal(twins.client.get(f"/v1/styles/nobody/preview.svg{query}"))
        assert error["code"] == "style_not_found"
        assert error["message"] == f"style is 'nobody'; {whose} has: upright, hasty"


def test_a_hand_of_strokes_is_of_the_model_that_was_asked_for(twins: Service) -> None:
    own = {"strokes": [[[x, x % 7] for x in range(60)]], "text": "own"}
    for name in ("scrawl", "scrawl-int8"):
        made = twins.client.post("/v1/styles", json=own | {"model": name}).json()["style"]
        asked = {"text": "keel", "model": name, "style": made}
        assert twins.client.post("/v1/handwriting", json=asked).status_code == 200


def test_a_preview_by_a_model_that_is_not_there_names_those_there_are(twins: Service) -> None:
    error = _refusal(twins.client.get("/v1/styles/upright/preview.svg?model=quill"))
    assert error["code"] == "model_not_found"
    assert error["message"] == "model is 'quill'; this service has: scrawl, scrawl-int8"


def test_a_preview_is_by_a_model_that_is_ready(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped:
        styles, engine = {"upright": None}, SimpleNamespace(ready=False)
        name, precision = "stopped", "float32"
        artifact = SimpleNamespace(manifest=SimpleNamespace(provenance={}))

    of, stopped = Models.of, Stopped()
    monkeypatch.setattr(Models, "of", lambda self, kind: [stopped, *of(self, kind)])
    monkeypatch.setattr(Models, "default", lambda self, kind: stopped)
    answer = ink.client.get("/v1/styles/upright/preview.svg")
    assert answer.status_code == 200


def test_hands_of_a_model_that_is_not_ready_are_listed_where_there_are_no_others(
    twins: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed() -> set[str]:
        return {style["model"] for style in twins.client.get("/v1/styles").json()["data"]}

    assert listed() == {"scrawl", "scrawl-int8"}  # and measured, so that none is asked again
    for ready in ({"scrawl"}, {"scrawl-int8"}, set()):
        with monkeypatch.context() as patch:
            for name in ("scrawl", "scrawl-int8"):
                engine = twins.app.state.models[name].engine
                patch.setattr(engine, "ready", name in ready)
            assert listed() == (ready or {"scrawl", "scrawl-int8"})


def test_a_hand_that_cannot_be_measured_is_not_left_out_in_silence(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = styles.hands.look

    async def busy(model: Any, style: str, text: str) -> Any:
        if style == "hasty":
            raise Overloaded("others are being served")
        return await measured(model, style, text)

    model = ink.app.state.models["scrawl"]
    monkeypatch.setattr(model, "looks", {})
    monkeypatch.setattr(styles.hands, "look", busy)
    assert ink.client.get("/v1/styles").status_code == 503
    assert model.looks.keys() == {"upright"}


def test_a_hand_is_measured_by_ink_without_its_slips(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    biases = list[float]()

    def neat(*line: Any, bias: float) -> InkLine:
        biases.append(bias)
        return InkLine(*line, bias=bias)

    monkeypatch.setattr(ink.app.state.models["scrawl"], "looks", {})
    monkeypatch.setattr(styles.hands, "InkLine", neat)
    assert ink.client.get("/v1/styles").status_code == 200
    assert biases == [1.0] * len(HANDS)


def test_of_many_hands_four_are_measured_at_once(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once would be refused, where they hold others up."""
    under_way: list[str] = []
    most: list[int] = []

    async def look(model: Any, style: str, text: str) -> Measures:
        under_way.append(style)
        most.append(len(under_way))
        await asyncio.sleep(0)
        under_way.remove(style)
        return Measures(slant_degrees=0, size_units=1, units_per_point=1, units_per_character=1)

    stored = [SimpleNamespace(id=str(n), description="") for n in range(9)]
    engine, manifest = SimpleNamespace(ready=True), SimpleNamespace(styles=stored)
    pen = SimpleNamespace(name="pen", engine=engine, manifest=manifest, looks={}, shared=Shared())
    monkeypatch.setattr(Models, "of", lambda self, kind: [pen])
    monkeypatch.setattr(styles.hands, "look", look)
    listed = ink.client.get("/v1/styles").json()["data"]
    assert [style["id"] for style in listed] == [entry.id for entry in stored]
    assert max(most) == 4


def test_what_many_ask_for_at_once_is_drawn_and_measured_once(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a service has just been started: each for itself, they refused each other."""
    made, usual = list[str](), {"_drawn": styles._drawn, "look": styles.hands.look}

    def slowly(name: str) -> Callable[..., Any]:
        async def make(model: Any, style: str, *more: Any) -> Any:
            made.append(f"{name} {style}")
            await asyncio.sleep(0.3)
            return await usual[name](model, style, *more)

        return make

    model = ink.app.state.models["scrawl"]
    monkeypatch.setattr(model, "previews", {})
    monkeypatch.setattr(model, "looks", {})
    monkeypatch.setattr(styles, "_drawn", slowly("_drawn"))
    monkeypatch.setattr(styles.hands, "look", slowly("look"))
    asked = ["/v1/styles", "/v1/styles/hasty/preview.svg", "/v1/styles/upright/preview.svg"] * 6
    with ThreadPoolExecutor(len(asked)) as threads:
        answers = list(threads.map(ink.client.get, asked))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 3
    styles_of = sorted(style.id for style in model.manifest.styles)
    assert sorted(made) == ["_drawn hasty", "_drawn upright", *(f"look {s}" for s in styles_of)]


def test_a_preview_that_another_judge_is_choosing_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def drawn(model: Any, style: str, judge: Any) -> str:
        await asyncio.sleep(0)
        return f"by {judge and judge.fingerprint}"

    async def asked() -> list[Any]:
        request: Any = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(models=None)))
        return await asyncio.gather(*(styles.preview(request, "ada") for _ in range(2)))

    judges = iter([SimpleNamespace(fingerprint="squint"), None])
    pen = SimpleNamespace(previews={}, shared=Shared())
    monkeypatch.setattr(styles, "only_judge", lambda models: next(judges))
    monkeypatch.setattr(styles, "_model_of", lambda *_: pen)
    monkeypatch.setattr(styles, "_drawn", drawn)
    assert [answer.body for answer in asyncio.run(asked())] == [b"by squint", b"by None"]


def test_hands_and_previews_that_name_no_model_are_of_the_precision_of_the_settings(
    in_both: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    """And whoever has a hand made is told of which model it is: the other takes no such token."""
    in_both("scrawl", tmp_path)
    ink = {"strokes": [[[4.0 * i, 60 + 20 * (i % 5)] for i in range(60)]], "text": "mmm"}
    for precision, name in (("exact", "scrawl"), ("int8", "scrawl-int8")):
        with running(settings(tmp_path, precision=precision)) as service:
            made = service.client.post("/v1/styles", json=ink).json()
            model = service.app.state.models[name]
            assert (made["model"], made["system_fingerprint"]) == (name, model.fingerprint)
            place = "/v1/styles/upright/preview.svg"
            drawn, named = (
                service.client.get(f"{place}{of}").content for of in ("", f"?model={name}")
            )
            assert drawn == named
