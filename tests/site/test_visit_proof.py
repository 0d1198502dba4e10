"""The Proof and Lab tabs visited without a browser, and what is known of models as time passes."""

from typing import Any

import pytest

from tests.site.visiting import PEN, TEXT, Json, Visitor, model, serving

_PARITY = [
    {"name": "steps", "value": 1e-7, "bound": 2.5e-3, "holds": True, "detail": "over all"},
    {"name": "letters", "value": 12345, "bound": 12000, "holds": False, "detail": "of them"},
    {"name": "ratio", "value": 0.98765, "bound": 0, "holds": True, "detail": "a share"},
]
_TITLES = ["all", "#proof-models h2", "textContent"]
_VERDICTS = ["all", "#proof-models .verdict", "textContent"]
_BUTTONS = ["all", "#proof-models button", "ariaDisabled"]
_LOST = {"ok": False, "max_error": None, "bound": 1.0, "steps": 9, "detail": "off"}


def _proof(visit: Visitor, *steps: list[Any], **how: Any) -> list[Any]:
    return visit(*steps, **({"address": "#proof"} | how))


def test_every_model_has_its_figures(visit: Visitor) -> None:
    folded = model("small", "language", precision="int8", variant={"folded": True}, parity=_PARITY)
    found = _proof(
        visit, _TITLES, ["all", "#proof-models td", "textContent"],
        ["all", "#proof-models td", "@data-column"], ["all", "#proof-models th"],
        ["all", "#proof-models dd"], ["all", "#proof-models .hint"],
        ["all", "#proof-models td span", "className"],
        ["all", "#proof-models article", "@aria-labelledby"],
        ["all", "#proof-models p[role=status]", "className"], answers=serving(PEN, folded),
    )  # fmt: skip
    assert found[0] == ["penhandwriting", "smalllanguage"]
    assert found[1][-9:] == [
        "1.0e-07", "2.5e-03", "✓ holds", "12,345", "12,000", "✗ broken", "0.988", "0", "✓ holds",
    ]  # fmt: skip
    assert found[2][-3:] == ["Value", "Bound", "Holds"]
    assert found[3] == [
        "Comparison",
        "Value",
        "Bound",
        "Holds",
        "stepsover all",
        "lettersof them",
        "ratioa share",
    ]
    network = "LSTM, layer norm, 2 \u00d7 400 units, 1,234,567 parameters"
    assert found[4][:5] == [network, "9", "data of pen", "ort 1", "abc"]
    assert found[4][5:7] == [f"{network}, 8 bits", "9, and one more in a table of all first inputs"]
    assert found[5] == ["This artifact carries no parity report."]
    assert found[6][-3:] == ["good", "bad", "good"]
    assert found[7] == ["proof-of-pen", "proof-of-small"]
    assert found[8] == 2 * ["verdict good"]


def test_a_model_is_checked_when_somebody_asks(visit: Visitor) -> None:
    good = PEN["attestation"] | {"max_error": 2e-6}
    answers = serving(**{"/v1/models/pen/attest": {"held": True, "body": good}})
    found = _proof(
        visit, _BUTTONS, ["asked"], ["press", "#proof-models button"], _BUTTONS, _VERDICTS,
        ["asked"], ["says", None], ["asked"], _VERDICTS, _BUTTONS, answers=answers,
    )  # fmt: skip
    assert found[0] == 3 * ["false"]
    assert found[2] == ["true", "false", "false"]
    assert found[3][0] == "Replaying the golden vectors…"
    assert [(one["method"], one["path"]) for one in found[4]] == [("POST", "/v1/models/pen/attest")]
    assert [one["path"] for one in found[5]] == ["/v1/models/pen"]
    assert found[6][0].startswith("Attested on this machine: 4,000 steps replayed at ")
    assert "at its start" not in found[6][0]
    assert "largest error 2.0e-06" in found[6][0]
    assert "at its start" in found[6][1]
    assert found[7] == 3 * ["false"]


def test_what_is_checked_is_the_model_of_the_button_as_it_is_now(visit: Visitor) -> None:
    path = "/v1/models/shakespeare"
    answers = serving(**{f"{path}/attest": {"body": TEXT["attestation"]}})
    answers[path] = {"body": TEXT | {"digest": "def"}}
    facts = ["all", "#proof-models dd"]
    press = ["press", "[aria-labelledby=proof-of-shakespeare] button"]
    found = _proof(visit, facts, ["asked"], press, ["asked"], facts, answers=answers)
    assert [one["path"] for one in found[2]] == [f"{path}/attest", path]
    assert sorted(found[3]) == sorted([*found[0][:9], "def", *found[0][10:]])


def test_a_check_that_fails_says_why_and_may_be_asked_for_again(visit: Visitor) -> None:
    busy = {"status": 429, "body": {"error": {"message": "busy"}}}
    answers = serving(**{"/v1/models/pen/attest": [busy, {"body": _LOST}]})
    found = _proof(
        visit, ["press", "#proof-models button"], _VERDICTS,
        ["all", "#proof-models .verdict", "className"], _BUTTONS,
        ["press", "#proof-models button"], _VERDICTS, ["press", "#write-tab"], ["look", "#verdict"],
        answers=answers,
    )  # fmt: skip
    assert (found[0][0], found[1][0]) == ("busy", "verdict bad")
    assert found[2] == 3 * ["false"]
    assert "Not attested, so not served: off" in found[3][0]
    assert found[4].startswith("Not served: it does not compute here")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"unproved": "no report"}, "Served without proof: no report."),
        ({"unproved": "no report", "ready": False, "failed": "it is lost"},
         "Not served, as it is without proof: no report."),
    ],
)  # fmt: skip
def test_a_model_without_proof_says_so(visit: Visitor, change: Json, told: str) -> None:
    assert told in _proof(visit, _VERDICTS, answers=serving({**PEN, **change}, TEXT))[0]


def test_of_what_a_server_drew_it_is_told_how_much_is_the_same(visit: Visitor) -> None:
    def sample(equal: int) -> Json:
        told = {"equal": equal, "of": 1200, "unit": "points", "runtime": "ort 2"}
        return {**PEN, "attestation": PEN["attestation"] | {"sample": told}}

    for equal, name in ((1199, "bad"), (1200, "good")):
        found = _proof(
            visit,
            _VERDICTS,
            ["all", "#proof-models .verdict", "className"],
            answers=serving(sample(equal), TEXT),
        )
        assert (
            found[0][1]
            == f"{equal:,} of 1,200 points drawn by the server (ort 2) are the same here"
        )
        assert found[1][1] == f"verdict {name}"


def test_a_model_that_is_not_ready_is_asked_about_until_it_is(visit: Visitor) -> None:
    early = {**TEXT, "ready": False, "attestation": None, "pending": "It waits."}
    answers = serving(PEN, early)
    answers["/v1/models/shakespeare"] = [
        {"body": early},
        {"lost": True},
        {"status": 404},
        {"body": TEXT},
    ]
    ask, verdict = ["asked", "/v1/models/shakespeare"], ["look", "#verdict"]
    found = visit(
        verdict, ask, *[step for _ in range(4) for step in (["passes", 2000], verdict, ask)],
        address="#text", answers=answers,
    )  # fmt: skip
    assert found[0] == "It waits."
    assert [len(asked) for asked in found[1::2]] == [1, 1, 1, 1, 0]
    assert [text[:6] for text in found[2::2]] == ["It wai", "It wai", "Ready:", "Ready:"]


def test_a_model_is_asked_about_in_one_place_and_again_when_need_be(visit: Visitor) -> None:
    early = {**TEXT, "ready": False, "attestation": None}
    route, path = "/v1/completions", "/v1/models/shakespeare"
    answers = serving(PEN, early, **{route: [{"events": []}, {"lost": True}]})
    answers[path] = [*3 * [{"body": early}], {"body": TEXT}]
    start, ask = ["press", "#text-start"], ["asked", path]
    waits = [["passes", 2000], ask]
    found = visit(
        ask, start, ask, *waits, *waits, *waits, *waits, start, ask, address="#text",
        answers=answers
    )  # fmt: skip
    assert [len(asked) for asked in found] == [1, 0, 1, 1, 1, 0, 1]


def test_a_model_that_has_gone_is_not_asked_for_any_more(visit: Visitor) -> None:
    gone = {"status": 404, "body": {"error": {"message": "no such model", "param": "model"}}}
    answers = serving(PEN, TEXT, **{"/v1/completions": gone})
    answers["/v1/models"] = [answers["/v1/models"], serving(PEN)["/v1/models"]]
    found = visit(
        ["press", "#text-start"], ["look", "#text-error"], ["look", "#verdict"], ["passes", 9000],
        ["asked", "/v1/models/shakespeare"],
        ["all", "#text-model option"], address="#text", answers=answers,
    )  # fmt: skip
    assert found == [
        "no such model", "Not served: it is not served any more.", [], ["shakespeare, not served"],
    ]  # fmt: skip


def test_a_service_that_answers_nothing_is_doubted_until_it_does(visit: Visitor) -> None:
    answers = serving(**{"/v1/completions": {"lost": True}})
    answers["/v1/models/shakespeare"] = [{"lost": True}, {"body": TEXT}]
    verdict = ["look", "#verdict"]
    found = visit(
        verdict, ["press", "#text-start"], ["look", "#text-error"], verdict, ["passes", 2000],
        verdict,
        address="#text", answers=answers,
    )  # fmt: skip
    assert found[1:3] == 2 * ["The service does not answer."]
    assert found[0] == found[3]
    assert found[0].startswith("Ready")


def test_models_that_come_later_are_known_by_an_answer(visit: Visitor) -> None:
    early = {**TEXT, "ready": False, "failed": "it is lost"}
    answers = serving(PEN, early, **{"/v1/completions": {"events": []}})
    answers["/v1/models/shakespeare"] = {"body": TEXT}
    found = visit(
        ["look", "#verdict"],
        ["press", "#text-start"],
        ["look", "#verdict"],
        address="#text",
        answers=answers,
    )
    assert found[0] == "Not served: it is lost."
    assert found[1].startswith("Ready")


def test_the_list_of_models_is_asked_for_until_it_comes(visit: Visitor) -> None:
    answers = serving()
    answers["/v1/models"] = [
        {"lost": True},
        {"status": 503, "body": {"error": {"message": "wait"}}},
        {"text": "<p>"},
        answers["/v1/models"],
    ]
    verdict = ["look", "#verdict"]
    found = visit(
        verdict, ["look", "#verdict", "className"], ["press", "#write-start"], ["passes", 2000],
        verdict, ["passes", 2000], verdict,
        ["asked", "/v1/handwriting"], ["passes", 2000], verdict, _TITLES, answers=answers,
    )  # fmt: skip
    assert found[:4] == [
        "The service does not answer.",
        "verdict bad",
        "wait",
        "What came is no answer of Evenkeel.",
    ]
    assert found[4] == []
    assert found[5].startswith("Ready")
    assert len(found[6]) == 3


# --- Lab ------------------------------------------------------------------------------------------


def test_rows_are_normalised_as_they_are_changed(visit: Visitor) -> None:
    rows = [
        ["all", "#lab-layer td"],
        ["all", "#lab-batch td"],
        ["look", "#lab-layer-moved"],
        ["look", "#lab-batch-moved"],
    ]
    found = visit(
        *rows, ["type", "#lab-padding", "2"], *rows, ["look", "#lab-padded"],
        ["all", "#lab-batch .pad th"],
        ["type", "#lab-numbers input", "-3"], ["look", "#lab-numbers output"],
        rows[0], ["press", "#lab-again"], *rows,
        ["look", "#lab-numbers output"], ["look", "#lab-padded"], ["look", "#lab-padding", "value"],
        ["type", "#lab-padding", "1"],
        *[["look", f"#lab-{name}-moved", "className"] for name in ("layer", "batch")],
        address="#lab",
    )  # fmt: skip
    first, padded, again = found[:4], found[4:8], found[12:16]
    assert first[0][:4] == ["\u20071.34", "\u22120.27", "\u22121.07", "\u20070.00"]
    assert first[2:] == 2 * ["No row has moved by a bit"]
    assert padded[0][:20] == first[0]
    assert padded[0][20:] == 2 * [*3 * ["\u20070.00"], ""]
    assert padded[1][:3] != first[1][:3]
    assert padded[2] == "No row has moved by a bit"
    assert padded[3].startswith("Padding moved a row by up to 1.")
    moved = padded[1][3:20:4]
    assert max(moved)[1:] == padded[3][-4:]
    assert found[8:11] == ["2", ["pad", "pad"], "-3"]
    assert found[11][0] == "\u22121.40"  # of a row of -3, 5, 4
    assert again == first
    assert found[16:] == ["7", "0", "0", "verdict good", "verdict bad"]


def test_the_table_of_invariances_is_computed(visit: Visitor) -> None:
    verdict = ["look", "#lab-verdict"]
    found = visit(
        ["look", "#lab-table", "hidden"], ["look", "#lab-bounds"], ["all", "#lab-kinds th"],
        ["press", "#lab-compute"], verdict,
        ["look", "#lab-table", "hidden"], ["all", "#lab-invariances th"],
        ["all", "#lab-invariances .good"], ["press", "#lab-compute"],
        verdict, ["look", "#lab-compute"], ["look", "#lab-verdict", "className"], address="#lab",
    )  # fmt: skip
    assert found[0] is True
    assert found[1].startswith(
        "Invariant: no output moves by more than 1.0e-09 of the largest. Changes: one moves by more"
    )
    assert found[2] == ["Change", "batch norm", "weight norm", "layer norm"]
    assert found[3].startswith("18 of 18 entries are the paper's; networks 1 to 5,")
    assert (found[4], len(found[5]), found[6]) == (False, 6, 18 * ["✓"])
    assert found[7].startswith("18 of 18 entries are the paper's; networks 6 to 10,")
    assert found[8:] == ["Compute with other networks", "verdict good"]


_PLOTS = [{"file": "a.png", "title": "A", "paper": "figure 1", "text": "It falls."}]


def test_what_was_measured_is_shown_if_it_came_with_the_service(visit: Visitor) -> None:
    path = "/static/lab/plots.json"
    figures, images = ["all", "#lab-plots figure"], ["all", "#lab-plots img", "src"]
    hidden = [["look", f"#lab-{name}", "hidden"] for name in ("measured", "drawing")]
    again = [["press", "#text-tab"], ["press", "#lab-tab"]]
    told = {"body": {"plots": _PLOTS, "draws": True}}
    found = visit(
        figures,
        images,
        *hidden,
        ["all", "#lab-plots img", "alt"],
        ["asked"],
        *again,
        ["asked", path],
        address="#lab",
        answers=serving(**{path: told}),
    )
    assert found[0] == ["A figure 1. It falls."]
    assert found[1:5] == [["http://127.0.0.1:8000/static/lab/a.png"], False, False, ["A, figure 1"]]
    assert found[6] == []
    none = {"body": {"plots": [], "draws": False}}
    assert visit(*hidden, answers=serving(**{path: none})) == [True, True]
    lost = [{"lost": True}, {"status": 500}, {"text": "<p>"}, told]
    found = visit(*hidden, *again, *again, *again, *hidden, answers=serving(**{path: lost}))
    assert found == [True, True, False, False]
    found = visit(["asked"], *again, ["asked", path])  # which says that there is nothing
    assert found[1] == []
