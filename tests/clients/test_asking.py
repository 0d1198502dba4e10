"""What the command `evenkeel` asks a service for, by what its options say, and how often."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from clients.client import Client
from clients.command import complete
from tests.clients.commands import evenkeel
from tests.clients.scripted import Scripted, answered, refusal, streamed

_TEXT = [{"choices": [{"index": 0, "text": "b", "finish_reason": "length"}]}, "[DONE]"]
_PAGE = [{"lines": ["a"], "seed": 1}, {"line": 0, "points": [[0, 0, 1]], "finish_reason": "stop"},
         {"usage": {}}, "[DONE]"]  # fmt: skip


def test_every_option_of_complete_is_the_field_of_its_name(service: Scripted) -> None:
    service.script = [streamed(_TEXT)] * 2
    words = ("--temperature", "0.5", "--top-p", "0.75", "--top-k", "9", "--min-p", "0.25")
    words += ("--logit-bias", '{"65": 3}', "--stop", "q", "--seed", "0", "--echo")
    evenkeel(service.url, "complete", "a", "--model", "m", "--max-tokens", "7", *words)
    evenkeel(service.url, "complete", "a", "--model", "m")
    options = {"temperature": 0.5, "top_p": 0.75, "top_k": 9, "min_p": 0.25, "stop": ["q"]}
    options |= {"logit_bias": {"65": 3}, "seed": 0, "echo": True, "max_tokens": 7}
    asked, plainly = service.requests
    always = {"model": "m", "prompt": "a", "return_state": False, "stream": True, "resume": True}
    assert asked == always | options
    assert plainly == always | {"max_tokens": 200, "echo": False, "seed": plainly["seed"]}


def test_the_reader_that_chooses_among_draws_is_named(service: Scripted, tmp_path: Path) -> None:
    service.script = [streamed(_PAGE)]
    words = ("write", "a", "-m", "m", "-o", str(tmp_path / "a.json"))
    evenkeel(service.url, *words, "--best-of", "3", "--best-by", "word", "--judge", "mine")
    (asked,) = service.requests
    chosen = {"best_of": 3, "best_by": "word", "judge": "mine"}
    assert asked.items() >= chosen.items()


@pytest.mark.parametrize(
    ("words", "answer", "options"),
    [
        (("complete",), _TEXT, {"temperature", "top-p", "top-k", "min-p", "max-tokens"}),
        (
            ("write", "-o", "a.json"),
            _PAGE,
            {"bias", "best-of", "width", "line-height", "stroke-width", "thinning", "wander"}
            | {"margin"},
        ),
    ],
)
def test_a_zero_is_said_as_any_number_is(
    service: Scripted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    answer: list[Any],
    options: set[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    service.script = [streamed(answer)]
    said = [word for option in (*options, "seed") for word in (f"--{option}", "0")]
    assert evenkeel(service.url, *words, "a", "-m", "m", *said).exit_code == 0
    asked = service.requests[0]
    assert {asked[option.replace("-", "_")] for option in (*options, "seed")} == {0}


@pytest.mark.parametrize("verb", ["complete", "write"])
def test_one_that_is_busy_is_asked_again_if_there_is_patience(
    service: Scripted, tmp_path: Path, verb: str
) -> None:
    words = ("complete", "a", "--model", "m")
    if verb == "write":
        words = ("write", "a", "-m", "m", "-o", str(tmp_path / "a.json"))
    answer = streamed(_TEXT if verb == "complete" else _PAGE)
    service.script = [refusal(503), answer, refusal(503), answer]
    assert evenkeel(service.url, *words).exit_code == 0
    assert evenkeel(service.url, *words, "--patience", "0").exit_code == 1
    assert len(service.requests) == 3


def test_this_machine_is_asked_by_no_proxy_whatever_it_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for host, asked in (
        ("127.0.0.1", False),
        ("localhost", False),
        ("[::1]", False),
        ("far", True),
    ):
        for others in ((), ("http://far:2",)):  # which is asked through one
            with Client([f"http://{host}:2", *others]) as client:
                proxy = client._http._transport_for_url(httpx.URL(f"http://{host}:2"))
            assert (proxy is not client._http._transport) is asked


@pytest.mark.parametrize(
    ("name", "value"),
    [("all_proxy", "socks5h://127.0.0.1:1"), ("NO_PROXY", "fd00::/8"), ("HTTP_PROXY", "ftp://a")],
)
def test_a_proxy_that_cannot_be_had_is_in_the_way_of_nobody_who_is_asked_without(
    service: Scripted, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    for other in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(other, raising=False)
        monkeypatch.delenv(other.lower(), raising=False)
    monkeypatch.setenv(name, value)
    service.script = [answered({"data": []})]
    assert evenkeel(service.url, "models").exit_code == 0
    for here in ("localhost", "[::1]"):
        Client([f"http://{here}:1"]).__exit__()
    told = evenkeel(service.url, "models", "--url", f"{service.url},http://far.example")
    assert told.exit_code == 2
    assert told.stderr.startswith(f"evenkeel: no proxies can be had from {name}: ")


def test_a_question_is_put_once(service: Scripted) -> None:
    service.script = [refusal(503), answered({"data": []})]
    assert evenkeel(service.url, "models").exit_code == 1
    assert len(service.headers) == 1


def test_the_key_of_the_environment_is_sent(
    service: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.script = [answered({"data": []})]
    monkeypatch.setenv("EVENKEEL_API_KEY", "ek-1")
    evenkeel(service.url, "models")
    assert "\r\nAuthorization: Bearer ek-1\r\n" in service.headers[0]


def test_what_is_copied_from_the_page_takes_the_key_from_where_the_command_does() -> None:
    page = Path(__file__).parents[2] / "service" / "web" / "copies.js"
    assert set(re.findall(r"EVENKEEL_\w+", page.read_text())) == {"EVENKEEL_API_KEY"}


def test_addresses_may_stand_apart(service: Scripted) -> None:
    service.script = [answered({"data": []})]
    assert evenkeel(service.url, "models", "--url", f" {service.url} , ,").exit_code == 0


def test_who_goes_on_from_a_state_leaves_standard_input_to_others(
    service: Scripted, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("3")
    service.script = [streamed(_TEXT)]
    words = ("complete", "--model", "m", "--state-in", str(tmp_path / "state"))
    assert evenkeel(service.url, *words, given="the next line of a loop").exit_code == 0
    assert service.requests[0]["prompt"] == ""


@pytest.mark.parametrize("kept", ["token", "token\n", "token\r\n", " token \n\n"])
def test_a_token_is_sent_without_what_an_editor_put_around_it(
    service: Scripted, tmp_path: Path, kept: str
) -> None:
    (tmp_path / "state").write_text(kept, newline="")
    service.script = [streamed(_TEXT)]
    evenkeel(service.url, "complete", "-m", "m", "--state-in", str(tmp_path / "state"))
    assert service.requests[0]["state"] == "token"


def test_who_says_what_to_go_on_with_leaves_standard_input_to_others(service: Scripted) -> None:
    service.script = [streamed(_TEXT)]
    evenkeel(service.url, "complete", "", "-m", "m", given="the next line of a loop")
    assert service.requests[0]["prompt"] == ""


def test_the_moment_of_a_text_that_ends_without_a_word_is_kept(
    service: Scripted, tmp_path: Path
) -> None:
    told = [("b", {"finish_reason": None}), ("", {"finish_reason": "stop", "state": "t"})]
    events = [{"choices": [{"index": 0, "text": text} | more]} for text, more in told]
    service.script = [streamed([*events, "[DONE]"])]
    evenkeel(service.url, "complete", "a", "-m", "m", "--state-out", str(tmp_path / "state"))
    assert (tmp_path / "state").read_text() == "t"


def test_the_model_is_the_one_of_its_kind_that_the_service_would_take(service: Scripted) -> None:
    listed = [
        {"id": "pen", "kind": "handwriting", "default": True, "ready": True},
        {"id": "exact", "kind": "language", "default": False, "ready": True},
        {"id": "eight", "kind": "language", "default": True, "ready": True},
    ]
    service.script = [answered({"data": listed}), streamed(_TEXT)]
    result = evenkeel(service.url, "complete", "a")
    assert (result.exit_code, result.stderr) == (0, "")
    assert service.requests[1]["model"] == "eight"


def test_a_model_that_neither_the_caller_nor_the_service_chose_is_named(service: Scripted) -> None:
    listed = [
        {"id": name, "kind": "reader", "default": False, "ready": True} for name in ("new", "tried")
    ]
    service.script = [answered({"data": listed}), answered({"text": "Even keel"})]
    result = evenkeel(service.url, "read", given="[[[0, 0], [1, 1]]]")
    assert service.requests[1]["model"] == "new"
    assert result.stdout == "Even keel\n"
    assert result.stderr == "evenkeel: asks new; -m names another: tried\n"


def test_a_text_on_a_terminal_ends_with_a_line_end_and_what_is_piped_as_it_does(
    service: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for on_terminal in (False, True):
        monkeypatch.setattr("clients.command._is_terminal", lambda stream, is_it=on_terminal: is_it)
        for words in ((), ("--json",)):
            service.script = [streamed(_TEXT)]
            told.append(evenkeel(service.url, "complete", "a", "-m", "m", *words).stdout)
    event = f"{json.dumps(_TEXT[0])}\n"
    assert told == ["b", event, "b\n", event]


def test_a_text_that_breaks_off_on_a_terminal_has_its_error_on_a_line_of_its_own(
    service: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clients.command._is_terminal", lambda _: True)
    begun = {"choices": [{"index": 0, "text": "ROM"}]}
    wrong = {"error": {"message": "told", "type": "invalid_request_error"}}
    told = []
    for events in ([begun, wrong], [wrong]):
        service.script = [streamed(events)]
        told.append(evenkeel(service.url, "complete", "a", "-m", "m").output)
    assert told == ["ROM\nevenkeel: told\n", "evenkeel: told\n"]


def test_where_standard_input_is_closed_a_text_begins_from_nothing(
    service: Scripted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", None)  # as Python has it then
    service.script = [streamed(_TEXT)]
    complete(model="m", url=service.url)
    assert (service.requests[0]["prompt"], capsys.readouterr().out) == ("", "b")


def test_a_model_that_has_yet_to_prove_itself_is_listed(service: Scripted) -> None:
    new = {"id": "new", "kind": "language", "parameters": 1000, "attestation": None}
    service.script = [answered({"data": [new]})]
    result = evenkeel(service.url, "models")
    assert (result.exit_code, result.stdout.split()[-3:]) == (0, ["not", "attested", "yet"])


def test_a_verdict_is_told_with_its_error_and_how_large_that_may_be(service: Scripted) -> None:
    verdict = {"ok": True, "max_error": 2e-6, "bound": 1e-3, "steps": 9, "detail": ""}
    service.script = [answered(verdict)]
    told = evenkeel(service.url, "attest", "m").stdout
    assert told.split(maxsplit=1) == ["m", "ok, error 2.0e-06 of 1.0e-03 in 9 steps\n"]


def test_a_page_is_told_with_the_seed_that_gives_it_again(
    service: Scripted, tmp_path: Path
) -> None:
    service.script = [streamed(_PAGE)]
    result = evenkeel(service.url, "write", "a", "-m", "m", "-o", str(tmp_path / "a.json"))
    assert (result.stdout, result.stderr) == ("", f"{tmp_path / 'a.json'}, seed 1\n")
