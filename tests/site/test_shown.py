"""The page's own modules where they show nothing yet: what is typed, taken away, asked and told."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from contract.alphabets import ALPHABET
from service.ink.schemas import MOST_CHARACTERS
from tests.site.conftest import Ask

_WRITES = {"characters": ALPHABET, "marks": []}


def test_what_the_pen_cannot_write_is_said_below_the_field(ask: Ask) -> None:
    greek = "αβγδεζηθικλμν"
    cases = {
        "a": "",
        "": "",
        " \n\t": "There is nothing but spaces to write.",
        "дa\u0007д": "The pen cannot write д  U+0007",
        greek[:12]: f"The pen cannot write {'  '.join(greek[:12])}",
        greek: f"The pen cannot write {'  '.join(greek[:12])}  and 1 more",
        "x" * MOST_CHARACTERS: "",
        "x" * MOST_CHARACTERS + "y": "These are 2,001 characters: the pen writes 2,000 at a time.",
        "…" * 667: "These are 2,001 characters: the pen writes 2,000 at a time.",
        "\u200b" * 2001: "There is nothing but spaces to write.",
        "\u200b" * 2000 + "a": "These are 2,001 characters: the pen writes 2,000 at a time.",
    }
    (found,) = ask("typed", [{"texts": [*cases], "writes": _WRITES}])
    for (told, hidden, wrong, invalid), expected in zip(found, cases.values(), strict=True):
        assert told == wrong == expected
        assert (hidden, invalid) == (not expected, "true" if expected else "false")


def test_figures_are_told_in_words(ask: Ask) -> None:
    figures = {
        0: ["0 lines", "0", "0"],
        1: ["1 line", "1.0e+00", "1"],
        1234.5: ["1,235 lines", "1.2e+03", "1,235"],
        6.84e-6: ["0 lines", "6.8e-06", "0"],
        2e-123: ["0 lines", "2.0e-123", "0"],
    }
    assert ask("told", [{"numbers": [*figures]}]) == [[*figures.values()]]


_REQUEST: dict[str, Any] = {
    "model": "pen", "text": "it's \"ink\"\nü", "bias": 0.5, "style": "ada", "line_height": 64,
    "stroke_width": 2.5, "thinning": 0.3, "color": "#1b2a49", "seed": 0, "width": 752,
}  # fmt: skip


def _link(request: dict[str, Any]) -> dict[str, str]:
    return {n: x if isinstance(x, str) else json.dumps(x) for n, x in request.items()}


def _asks_of(program: str, answer: httpx.Response) -> tuple[str, dict[str, Any]]:
    """Run a program whose request gets an answer: the address and what goes with it."""
    asked = []

    def post(url: str, **more: Any) -> httpx.Response:
        asked.append((url, more))
        return answer

    exec(program.replace("import httpx\n", ""), {"httpx": SimpleNamespace(post=post)})
    return asked[0]


def test_what_is_copied_asks_for_the_same_ink(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENKEEL_API_KEY", "theirs")
    given = httpx.Request("POST", "http://127.0.0.1/")
    refused, drawn = (httpx.Response(n, content=b"ink", request=given) for n in (422, 200))
    judged = _REQUEST | {"best_of": 4, "best_by": "word", "judge": "two", "style": None}
    requests = [
        {"request": _REQUEST},
        {"request": judged, "readers": ["two"]},
        {"request": judged, "key": "a key", "readers": ["one"]},
    ]
    ((plain, alone, keyed),) = ask("copied", [{"requests": requests}])
    *command, file = shlex.split(plain["curl"])
    assert (command[:3], file) == (
        ["curl", "--fail-with-body", "http://127.0.0.1/v1/handwriting"],
        "evenkeel-0.svg",
    )
    assert json.loads(command[command.index("-d") + 1]) == _REQUEST
    told = json.loads(shlex.split(keyed["curl"])[-3])
    assert told == {name: value for name, value in judged.items() if value is not None}
    for found, key in ((plain, False), (keyed, True)):
        assert (
            ("EVENKEEL_API_KEY" in found["curl"]) == ("EVENKEEL_API_KEY" in found["python"]) == key
        )
        assert "a key" not in json.dumps(found)
        with pytest.raises(httpx.HTTPStatusError):
            _asks_of(found["python"], refused)
        assert list(tmp_path.iterdir()) == []
        url, asked = _asks_of(found["python"], drawn)
        (written,) = tmp_path.iterdir()
        assert (url, written.name, written.read_bytes()) == (command[2], file, b"ink")
        written.unlink()
        assert asked["json"] == json.loads(shlex.split(found["curl"])[-3])
        assert asked.get("headers") == ({"authorization": "Bearer theirs"} if key else None)
    assert plain["link"].startswith(
        "http://127.0.0.1/page?x#write?text=it%27s+%22ink%22%0A%C3%BC&hand=ada"
    )
    assert plain["followed"] == _link(_REQUEST | {"best_of": 1})
    followed = judged | {"judge": "two"}
    del followed["style"], followed["best_by"]
    assert keyed["followed"] == _link(followed)
    del followed["judge"]  # the only one there need not have this name elsewhere
    assert alone["followed"] == _link(followed)


def test_an_address_without_a_text_asks_for_nothing(ask: Ask) -> None:
    addresses = {
        "#write?text=a%3Fb&seed=2": {"text": "a?b", "seed": "2"},
        "#write?text=a?b&hand=ada": {"text": "a?b", "style": "ada"},
        "#write?seed=2": None, "#write": None, "#text?text=a": None, "": None,
    }  # fmt: skip
    assert ask("linked", [{"addresses": [*addresses]}]) == [[*addresses.values()]]


def _model(**changed: Any) -> dict[str, Any]:
    attestation = {"ok": True, "max_error": 1e-6, "bound": 2.5e-3, "steps": 4000, "detail": "off"}
    network = {"cell": "lstm", "norm": "layer", "layers": 2, "units": 400}
    told = {"id": "one", "kind": "reader", "attestation": attestation, "ready": True}
    return told | {"hyperparameters": network, "parameters": 1234567} | changed


def test_a_model_is_said_to_be_what_it_is(ask: Ask) -> None:
    off = _model()["attestation"] | {"ok": False, "max_error": None}
    plain = {"cell": "gru", "norm": "none", "layers": 1, "units": 8}
    models = [
        _model(hyperparameters=plain),
        _model(ready=None),
        _model(ready=False, failed="it is lost"),
        _model(ready=False, attestation=off),
        _model(ready=False, attestation=off, failed="it is lost"),
        _model(ready=False, attestation=None),
        _model(ready=False, attestation=None, pending="it waits"),
        _model(ready=False),
    ]
    figures = "4,000 steps replayed at its start, largest error 1.0e-06, allowed 2.5e-03"
    ready = "Ready: checked on this machine at its start, it computes what it computed in training."
    waits = "Getting ready: it is checking itself against its training."
    wrong = "it does not compute here what it computed in training"
    broken = figures.replace("1.0e-06", "not a number")
    expected = [
        (ready, "good", f"Attested on this machine: {figures}", "good"),
        (ready, "good", f"Attested on this machine: {figures}", "good"),
        ("Not served: it is lost.", "bad", "Not served: it is lost.", "bad"),
        *2
        * [(f"Not served: {wrong}.", "bad", f"Not attested, so not served: off ({broken})", "bad")],
        (waits, "", "Not attested yet: the model is replaying its golden vectors.", ""),
        ("it waits", "", "it waits", ""),
        (waits, "", f"Attested on this machine: {figures}", "good"),
    ]
    (found,) = ask("called", [{"models": models}])
    for said, (one, is_good, other, whether) in zip(found, expected, strict=True):
        assert said["shown"] == [[one, f"verdict {is_good}"], [other, f"verdict {whether}"]]
    answers, lost, early = [True, True, False], [False, True, True], [False, False, False]
    assert [said["is"] for said in found] == [*2 * [answers], *3 * [lost], *3 * [early]]
    assert [said["network"] for said in found[:2]] == [
        "GRU, no norm, 1 \u00d7 8 units, 1,234,567 parameters",
        "LSTM, layer norm, 2 \u00d7 400 units, 1,234,567 parameters",
    ]


def test_a_model_that_reads_is_asked_to_choose_where_it_answers(ask: Ask) -> None:
    two, lost = _model(id="two"), {"ready": False, "failed": "it is lost"}
    late = {"attestation": None, "ready": False}
    moments = [
        {"models": [_model(), two], "judge": "three"},
        {"models": [two | lost]},
        {"models": [_model(**late)]},
        {"models": [_model(**lost), two | lost]},
    ]
    (found,) = ask("judged", [{"moments": moments, "chosen": "two"}])
    one, word = {"best_by": "word"}, {"best_of": 4}
    assert [told["draws"] for told in found] == [
        [one | word | {"judge": "two"}, {}, one | {"best_of": 3, "judge": "three"}],
        [one | word | {"judge": "one"}, {}, one | {"best_of": 3, "judge": "one"}],
        [{}, {}, one | {"best_of": 3, "judge": "one"}],
        [{}, {}, one | {"best_of": 3}],
    ]
    assert [told["readers"] for told in found] == [["one", "two"], ["one"], ["one"], []]


def _error(**error: str) -> str:
    return json.dumps({"error": error})


_NO_LISTS = ["<p>", "null", "1", "[1]", "{}", '{"data": {}}', '{"status": "ok"}']
_DONE = "data: [DONE]\n\n"
# Each with what is heard of it, the message and field of its error, and what the page tells itself.
_ANSWERS: list[tuple[dict[str, Any], list[Any], list[str | None] | None, list[str]]] = [
    (
        {"parts": [": wait\n\nda", 'ta: {"a":\ndata: 1}\n\ndata:{"b":2}\n\n' + _DONE]},
        [{"a": 1}, {"b": 2}], None, ["served"],
    ),
    (
        {"parts": ['data: {"a":1}\n\n']},
        [{"a": 1}], ["The answer ended before its end mark.", None], ["served", "unanswered"],
    ),
    ({"parts": [f"data: {_error(message='no', param='n')}\n\n"]}, [], ["no", "n"], ["served"]),
    *(
        ({"parts": [none]}, [], ["What came is no answer of Evenkeel.", None], ["served"])
        for none in ("data: 1\ndata: 0\n\n", "data: <p>\n\n", "data: null\n\n", "data: 1\n\n")
    ),
    *(
        (
            {"parts": [f'data: {{"error": {error}}}\n\n']},
            [], ["The answer ended in an error.", None], ["served"],
        )
        for error in ('"bad gateway"', "{}", '{"message": null}', '{"message": ""}', "[1]")
    ),
    (
        {"status": 404, "parts": [_error(message="gone", param="model")]},
        [], ["gone", "model"], ["unserved"],
    ),
    (
        {"status": 503, "parts": [_error(message="wait", code="not_ready")]},
        [], ["wait", None], ["unserved"],
    ),
    ({"status": 429, "parts": [_error(message="later", param="n")]}, [], ["later", "n"], []),
    *(
        ({"status": 502, "parts": [body]}, [], ["The service answers 502.", None], [])
        for body in ("<p>", '{"error": "bad"}', '{"error": {"message": null}}', "null", "[1]")
    ),
    *(
        ({"status": 503, "headers": {"Retry-After": after}, "parts": [body]}, [], [said, None], [])
        for after, body, said in (
            ("37", _error(message="busy"), "busy; try again in 37 s"),
            ("37", "<p>", "The service answers 503; try again in 37 s"),
            ("0", "<p>", "The service answers 503."),
        )
    ),
    ({"lost": True}, [], ["The service does not answer.", None], ["unanswered"]),
]  # fmt: skip


def test_answers_are_heard_and_their_errors_told(ask: Ask) -> None:
    (found,) = ask("answered", [{"answers": [answer for answer, *_ in _ANSWERS]}])
    asked = {"path": "/v1/completions", "method": "POST", "body": {"model": "it"}}
    asked |= {"headers": {"Content-Type": "application/json"}}
    for said, (_, heard, error, told) in zip(found, _ANSWERS, strict=True):
        expected = {"asked": [asked], "heard": heard, "error": error, "told": told}
        assert said == expected


def test_a_list_of_models_that_is_none_is_told_to_be_no_answer_of_the_service(ask: Ask) -> None:
    """As whatever else listens there would answer."""
    (found,) = ask("modelsListed", [{"texts": ['{"data": [1]}', *_NO_LISTS]}])
    assert found == [[1], *["What came is no answer of Evenkeel."] * len(_NO_LISTS)]


def test_one_task_runs_at_a_time_and_its_end_is_said(ask: Ask) -> None:
    (found,) = ask("tasked", [{"valid": False}])
    assert found["found"] == [
        ["first", None],
        ["first", "it failed"],
        ["Writing…", None],
        ["first", None],
        [False, True],
        *3 * [["over it", None]],
    ]
    assert found["ran"] == ["one", "quiet"]
    tasks, quiet = [[True, True], [False, False]], [[False, True], [False, False]]
    assert found["told"] == [*3 * tasks, *quiet, *tasks, *quiet]


_HAND = {"token": "t", "strokes": [[[1, 2], [3, 4.5]]], "model": "pen"}


def test_a_hand_is_kept_and_read_as_it_was_left_where_it_is_known_again(ask: Ask) -> None:
    """By this page; what another has left there, or a person, is none."""
    spoiled: list[Any] = [
        None, {}, 1, _HAND | {"strokes": []}, _HAND | {"strokes": [[]]}, _HAND | {"token": ""},
        _HAND | {"strokes": [[[1, None]]]}, _HAND | {"strokes": [[[1, 2, 3]]]},
        _HAND | {"model": None},
    ]  # fmt: skip
    texts = [json.dumps(_HAND | {"more": 1}), *map(json.dumps, spoiled), "{"]
    nothing = [None for _ in texts[1:]]
    (found,) = ask("ownHand", [{"texts": texts}])
    assert (found["read"], found["before"]) == ([_HAND, *nothing], [None, _HAND, *nothing[1:]])
    kept = {"token": "new", "strokes": [[[1, 2]]], "model": "pen"}
    assert (found["mine"], json.loads(found["kept"])) == ("new", kept)
    assert found["left"] == [None, None]
    (found,) = ask("ownHand", [{"texts": texts[:1], "forgetful": True}])
    assert (found["read"], found["before"], found["mine"]) == ([None], [], "new")
    assert (found["kept"], found["left"]) == (texts[0], [None, texts[0]])
