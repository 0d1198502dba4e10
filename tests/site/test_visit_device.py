"""The page on the visitor's device, and the API's own page, visited without a browser."""

from typing import Any

from tests.site.visiting import PEN, TEXT, Json, Visitor, model

_START = "site/start.js"
_EARLY = {"ready": None, "attestation": None, "pending": "Fetching."}
_MODELS = [{**PEN, **_EARLY}, {**TEXT, **_EARLY}]
_TOLD, _HIDDEN = ["look", ".fetching"], ["look", ".fetching", "hidden"]


def _says(**data: Any) -> list[Any]:
    return ["worker", data]


def _answers(id_: int, body: Any, status: int = 200) -> list[list[Any]]:
    return [_says(id=id_, status=status), _says(id=id_, content=body), _says(id=id_, end=True)]


_READY = [_says(ready=True), *_answers(1, {"data": _MODELS})]


def _visit(visit: Visitor, *steps: list[Any], **how: Any) -> list[Any]:
    return visit(*steps, **({"module": _START, "address": "?server"} | how))


def test_what_is_shown_wants_its_model(visit: Visitor) -> None:
    found = _visit(
        visit,
        ["posted"],
        *_READY,
        ["press", "#text-tab"],
        ["press", "#lab-tab"],
        ["posted"],
        ["press", "#draw-tab"],
        ["happens", "online"],
        ["posted"],
    )
    wants = [[one["wants"] for one in posted if "wants" in one] for posted in found]
    first = [*2 * ["handwriting"], "language"]  # at once, and when the page has shown it
    assert wants == [[], first, [*first, "handwriting", "handwriting"]]
    found = _visit(visit, _says(ready=True), ["posted"], address="#text")
    assert [one["wants"] for one in found[0] if "wants" in one] == 2 * ["language"]


def test_how_much_has_been_fetched_is_told(visit: Visitor) -> None:
    bar = ["look", "progress", "value"]
    found = _visit(
        visit, _HIDDEN, _says(fetched={"loaded": 1_250_000, "total": 5_000_000}), _HIDDEN, _TOLD,
        bar,
        _says(fetched={"loaded": 6_000_000, "total": 5_000_000}), bar,
        _says(fetched={"loaded": 0, "total": 0}), _HIDDEN,
    )  # fmt: skip
    assert found == [
        True,
        False,
        "Fetching the model, kept for the next visit:1.3 of 5.0 MB",
        "0.25",
        "1",
        True,
    ]


def test_what_could_not_be_had_is_told_until_it_is(visit: Visitor) -> None:
    verdict = ["look", "#verdict"]
    found = _visit(
        visit, *_READY, verdict, _says(trouble="pen: lost", of="pen"), _TOLD, verdict,
        _says(trouble="text: lost", of="shakespeare"),
        _TOLD, _says(fetched={"loaded": 1, "total": 2}), _says(fetched={"loaded": 0, "total": 0}),
        _TOLD, _HIDDEN,
        _says(trouble="", of="pen"), _TOLD, _HIDDEN,
        _says(trouble="", of="shakespeare"), _HIDDEN, ["look", "progress", "hidden"],
    )  # fmt: skip
    assert found[:4] == ["Fetching.", "pen: lost", "pen: lost", "pen: lost text: lost"]
    assert found[4:] == ["pen: lost text: lost", False, "text: lost", False, True, True]


def test_a_worker_is_a_module_beside_the_page_under_its_policy(visit: Visitor) -> None:
    """That of the page is what a script has that the page has made."""
    ((source, how),) = _visit(visit, ["began"])
    assert source == 'import "http://127.0.0.1:8000/site/worker.js";'
    assert how == {"type": "module"}


def test_what_cannot_begin_is_told(visit: Visitor) -> None:
    """Once, and nothing else is lost of it."""
    found = _visit(visit, _says(unready="No list."), _TOLD, _HIDDEN, ["posted"])
    assert found == ["No list.", False, []]


def test_the_page_is_kept_by_what_lies_beside_it_if_it_may_be(visit: Visitor) -> None:
    for refuses in (False, True):
        found = _visit(visit, ["registered"], ["look", "#verdict"], refuses=refuses)
        assert found[0] == "http://127.0.0.1:8000/sw.js"


def test_the_way_back_is_there_where_a_service_is(visit: Visitor) -> None:
    place = ["look", "#place", "hidden"]
    assert _visit(visit, place) == [False]
    for address in ("", "?serve", "?server=1"):
        assert _visit(visit, place, address=address) == [True]


def test_proof_has_a_sample_of_every_model_that_is_here_drawn(visit: Visitor) -> None:
    """And at no other tab, of none that is not here, and once."""
    drawn = {"sample": {"equal": 1, "of": 1, "unit": "bytes", "runtime": "x"}}
    here = [
        PEN, TEXT | {"attestation": TEXT["attestation"] | drawn},
        model("late", "language", **_EARLY),
        model("small", "language"),
    ]  # fmt: skip
    begun = [_says(ready=True), *_answers(1, {"data": here}), ["press", "#text-tab"], ["posted"]]
    proof = [["press", "#proof-tab"], ["posted"]]

    def attests(posted: list[Json]) -> list[tuple[str, int]]:
        asks = [one["asks"] for one in posted if "asks" in one]
        return [(a["path"].split("/")[3], a["id"]) for a in asks if a["path"].endswith("attest")]

    before, asked = map(attests, _visit(visit, *begun, *proof))
    assert before == []
    ((name, first),) = asked
    assert name == "pen"
    answers = _answers(first, PEN["attestation"] | drawn), _answers(first + 1, PEN)
    told = [step for answer in answers for step in answer]
    found = _visit(visit, *begun, *proof, *told, ["press", "#text-tab"], *proof)
    assert [name for name, _ in attests(found[-1])] == ["pen", "small"]


def test_a_hand_is_kept_no_longer_than_the_page_that_knows_it(visit: Visitor) -> None:
    hand: Json = {"evenkeel-hand": '{"token": "t", "strokes": [[[1, 2], [3, 4]]], "model": "pen"}'}
    found = _visit(
        visit, *_READY, ["all", "#write-hands input", "value"], ["kept", "localStorage"], local=hand
    )
    assert ("t" in found[0], found[1]) == (False, hand)


_DOCS = {"module": "service/web/docs.js", "page": "<html><body><div id='api'></div></body></html>"}
_KEYED = [{"status": 401}, {"body": {"openapi": "3"}}]


def test_the_page_of_the_api_asks_for_a_key_where_one_is_wanted(visit: Visitor) -> None:
    path = "/openapi.json"
    look = [["asked", path], ["swagger"], ["look", "#api"]]
    plain = visit(*look, answers={path: {"body": {"openapi": "3"}}}, **_DOCS)
    assert [one["headers"] for one in plain[0]] == [{}]
    served = {"openapi": "3", "servers": [{"url": "http://127.0.0.1:8000"}]}  # where the page is
    assert (plain[1]["spec"], plain[1]["keys"], plain[2]) == (served, [], "")
    keyed = visit(*look, answers={path: [*_KEYED]}, prompts=["\u200bek-a "], **_DOCS)
    assert [one["headers"] for one in keyed[0]] == [{}, {"authorization": "Bearer ek-a"}]
    assert keyed[1]["keys"] == [["key", "ek-a"]]
    refused = visit(
        *look, answers={path: [{"status": 401}, *_KEYED]}, prompts=["ek-a", "ek-b"], **_DOCS
    )
    assert refused[1]["keys"] == [["key", "ek-b"]]
    left = visit(*look, answers={path: {"status": 401}}, prompts=[None], **_DOCS)
    unread = {"servers": served["servers"]}
    assert (len(left[0]), left[1]["spec"], left[2]) == (1, unread, "")
    lost = visit(*look, answers={path: {"status": 500}}, prompts=["ek-a"], **_DOCS)
    assert len(lost[0]) == 1
    assert lost[1:] == [None, "The service does not answer: load the page again."]
