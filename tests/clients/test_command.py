"""The command `evenkeel` against a real service: what it prints, writes and exits with."""

import fcntl
import inspect
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from clients.command import main, write
from clients.files import FORMATS
from service.ink.schemas import HandwritingRequest
from tests.clients.commands import evenkeel
from tests.clients.scripted import Scripted, answered, refusal, streamed

_ROOT = Path(__file__).parents[2]
_COMMAND = (sys.executable, "-m", "clients")
_STATE_SPAN = ("--max-tokens", "20", "--seed", "5")
_ENDS = ("length", "stop")  # of two lines


def _out(url: str, *words: str, given: str | bytes | None = None) -> str:
    """What a command that must be a success prints."""
    result = evenkeel(url, *words, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes.decode()


def _process(url: str, *words: str) -> "subprocess.Popen[bytes]":
    """The command as the shell starts it."""
    return subprocess.Popen(
        [*_COMMAND, *words],
        cwd=_ROOT,
        env=os.environ | {"EVENKEEL_URL": url},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_interruptible,
    )


def _interruptible() -> None:
    """A shell has what it starts in the background ignore Ctrl-C, and so does what that starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _whole(url: str, path: str, **body: Any) -> Any:
    return httpx.post(f"{url}/v1/{path}", json=body, timeout=30)


def test_a_text_is_what_the_service_says_to_the_byte(url: str) -> None:
    body = {"model": "letters", "max_tokens": 40, "seed": 5, "temperature": 2.0}
    body |= {"top_k": 200, "logit_bias": {"65": 3}, "stop": ["q", "\n"]}
    words = ("--model", "letters", "--max-tokens", "40", "--seed", "5", "--temperature", "2")
    words += ("--top-k", "200", "--logit-bias", '{"65": 3}', "--stop", "q", "--stop", "\n")
    expected = _whole(url, "completions", prompt="RO\r\n", **body).json()["choices"][0]["text"]
    assert _out(url, "complete", "RO\r\n", *words) == expected
    for given in ((*words, "-"), words):
        assert _out(url, "complete", *given, given=b"RO\r\n") == expected
    echoed = _out(url, "complete", "--echo", "RO\r\n", *words)
    assert echoed == "RO\r\n" + expected


def test_what_a_terminal_would_obey_is_printed_all_the_same(url: str) -> None:
    assert _out(url, "complete", "\x1b[31mred", "--echo", "--max-tokens", "0") == "\x1b[31mred"


def test_a_text_goes_on_from_a_kept_state(url: str, tmp_path: Path) -> None:
    whole = _out(url, "complete", "RO", "--max-tokens", "40", "--seed", "5")
    state = str(tmp_path / "state")
    first = _out(url, "complete", "RO", *_STATE_SPAN, "--state-out", state)
    second = _out(url, "complete", "--max-tokens", "20", "--state-in", state)
    assert first + second == whole


def test_events_come_a_line_each(url: str) -> None:
    lines = _out(url, "complete", "RO", *_STATE_SPAN, "--json").splitlines()
    texts = [json.loads(line)["choices"][0]["text"] for line in lines]
    assert "".join(texts) == _out(url, "complete", "RO", *_STATE_SPAN)


_DRAWN = {format_: f"a{ending}" for ending, format_ in FORMATS.items() if format_ != "json"}


@pytest.mark.parametrize(
    ("name", "format_"), [(name, format_) for format_, name in (_DRAWN | {"png": "a.PNG"}).items()]
)
def test_ink_is_written_in_the_format_of_the_ending(
    url: str, tmp_path: Path, name: str, format_: str
) -> None:
    words = ("--seed", "3", "--bias", "2", "--width", "300", "--line-height", "40")
    _out(url, "write", "Even keel\nis on", "-o", str(tmp_path / name), *words)
    body = {"seed": 3, "bias": 2, "width": 300, "line_height": 40, "format": format_}
    expected = _whole(url, "handwriting", text="Even keel\nis on", **body).content
    assert (tmp_path / name).read_bytes() == expected


def test_ink_as_json_is_what_the_service_tells_of_a_whole_page(url: str, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    _out(url, "write", "-o", str(out), "--seed", "3", given="Even keel\n\nis on")
    body = {"text": "Even keel\n\nis on", "seed": 3, "format": "json"}
    expected = _whole(url, "handwriting", **body).json()
    written = json.loads(out.read_text())
    assert "resume" not in written
    assert {name: written[name] for name in expected.keys() - {"id", "created"}} == {
        name: value for name, value in expected.items() if name not in ("id", "created")
    }


def test_paper_is_what_is_asked_for(url: str, tmp_path: Path) -> None:
    for page, sent in (("a5", "a5"), ("100x80", {"width": 100, "height": 80})):
        out = tmp_path / "a.png"
        words = ("--page", page, "--margin", "8", "--paper", "ruled", "--transparent")
        _out(url, "write", "Even keel", "-o", str(out), "--seed", "3", *words)
        body = {"page": sent, "margin": 8, "paper": "ruled", "ground": "transparent"}
        expected = _whole(url, "handwriting", text="Even keel", seed=3, format="png", **body)
        assert out.read_bytes() == expected.content
    refused = evenkeel(url, "write", "a", "-o", "a.svg", "--page", "axb")
    assert (refused.exit_code, "axb" in refused.output) == (2, True)


def test_how_ink_looks_is_what_is_asked_for(url: str, tmp_path: Path) -> None:
    out = tmp_path / "a.svg"
    words = ("--width", "500", "--line-height", "40", "--stroke-width", "3", "--thinning", "0.5")
    words += ("--wander", "0.1", "--color", "#123456", "--bias", "2", "--style", "upright")
    _out(url, "write", "Even keel", "-o", str(out), "--seed", "3", *words)
    look = {"width": 500, "line_height": 40, "stroke_width": 3, "thinning": 0.5, "wander": 0.1}
    body = look | {"color": "#123456", "bias": 2, "style": "upright", "seed": 3}
    assert out.read_text() == _whole(url, "handwriting", text="Even keel", **body).text


def test_a_hand_is_asked_for_by_its_token(url: str, tmp_path: Path) -> None:
    stroke = [[[5 * i, 20 * (i % 2)] for i in range(40)]]
    made = httpx.post(f"{url}/v1/styles", json={"strokes": stroke, "text": "ab"}).json()["style"]
    out = tmp_path / "a.svg"
    _out(url, "write", "keel", "-o", str(out), "--seed", "3", "--style", made)
    assert out.read_text() == _whole(url, "handwriting", text="keel", seed=3, style=made).text


def test_every_option_of_write_is_a_field_of_the_request_or_its_own() -> None:
    options = set(inspect.signature(write).parameters)
    own = {"context", "out", "transparent", "url", "api_key", "patience"}
    assert options - own <= set(HandwritingRequest.model_fields)


def test_the_best_draw_is_asked_for_and_an_unreadable_line_is_told(
    url: str, tmp_path: Path
) -> None:
    out = tmp_path / "a.json"
    words = ("write", "Even\nkeel", "-o", str(out), "--seed", "3", "--best-of", "3")
    told = evenkeel(url, *words).stderr
    body = {"text": "Even\nkeel", "seed": 3, "best_of": 3, "format": "json"}
    lines = _whole(url, "handwriting", **body).json()["lines"]
    assert json.loads(out.read_text())["lines"] == lines
    unreadable = [line["text"] for line in lines if line["finish_reason"] == "unreadable"]
    assert unreadable  # this reader has random weights
    assert all(f"not legible enough: {text}" in told for text in unreadable)


# As editors of Windows and its shell write them.
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_ink_is_written_in_the_hand_of_a_file(url: str, tmp_path: Path, encoding: str) -> None:
    style = {"strokes": [[[i, i % 5] for i in range(40)]], "text": "ab"}
    (tmp_path / "mine.json").write_text(json.dumps(style), encoding)
    out = tmp_path / "a.svg"
    _out(url, "write", "a", "-o", str(out), "--seed", "3", "--style", str(tmp_path / "mine.json"))
    expected = _whole(url, "handwriting", text="a", seed=3, style=style).content
    assert out.read_bytes() == expected


def test_models_are_listed_with_their_proof(url: str) -> None:
    letters, scrawl, squint = _out(url, "models").splitlines()
    assert re.match(r"letters +language .*ok, error ", letters)
    assert re.match(r"scrawl +handwriting .*ok, error ", scrawl)
    assert re.match(r"squint +reader .*ok, error ", squint)
    assert [model["id"] for model in json.loads(_out(url, "models", "--json"))] == [
        "letters",
        "scrawl",
        "squint",
    ]


def test_a_replay_is_no_proof_of_a_model_with_a_red_report(service: Scripted) -> None:
    verdict = {"ok": True, "max_error": 1, "bound": 2, "steps": 9}
    model = {"id": "a", "kind": "reader", "parameters": 5, "unproved": None, "attestation": verdict}
    red = model | {"id": "b", "unproved": "the parity report is red: rounding"}
    service.script = [answered({"data": [model, red]})]
    proved, doubted = evenkeel(service.url, "models").stdout.splitlines()
    assert proved.split(maxsplit=4)[-1].startswith("ok, error ")
    assert doubted.split(maxsplit=4)[-1].startswith("unproved: the parity report is red: rounding")


def test_models_are_attested_on_demand(url: str) -> None:
    assert _out(url, "attest", "scrawl").startswith("scrawl ")
    assert len(_out(url, "attest").splitlines()) == 3


def test_a_model_that_does_not_agree_is_a_failure(service: Scripted) -> None:
    verdicts: list[dict[str, Any]] = [
        {"ok": ok, "max_error": error, "bound": 0, "steps": 9, "detail": "next is off"}
        for ok, error in ((True, 1), (False, None), (True, 1))  # the second put out no numbers
    ]
    service.script = [answered(verdict) for verdict in verdicts]
    result = evenkeel(service.url, "attest", "a", "b", "c")
    assert result.exit_code == 1
    assert [line.split()[1].strip(",:") for line in result.stdout.splitlines()] == [
        "ok",
        "failed",
        "ok",
    ]
    assert "b                    failed: next is off\n" in result.stdout


def test_latency_is_watched(url: str) -> None:
    out = _out(url, "watch", "--count", "2", "--every", "0")
    assert "\x1b" not in out
    for name in ("letters", "scrawl"):
        (row,) = re.findall(rf"^ *{name} +(.*)$", out, re.M)
        numbers = [float(number) for number in row.split()]
        assert all(number > 0 for number in numbers[:4])
        assert numbers[4:] == [0, 0, 2, 0]


def test_a_probe_that_fails_is_told(service: Scripted) -> None:
    models = {"data": [{"id": "m", "kind": "language"}]}
    service.script = [answered(models), *[refusal(400, kind="invalid_request_error")] * 2]
    result = evenkeel(service.url, "watch", "--count", "1")
    assert result.exit_code == 1
    assert result.stderr == "m: told 400\n"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("complete", "a", "--temperature", "9"), 1, "evenkeel: temperature is 9"),
        (("complete", "a", "--model", "nobody"), 1, "evenkeel: .*nobody"),
        (("attest", "nobody"), 1, "evenkeel: .*nobody"),
        (
            ("attest", "letters/attest?"),
            1,
            "evenkeel: there is nothing at '/v1/models/letters/attest%3F",
        ),  # a name is no path
        (("write", "\u6f22", "-o", "a.svg"), 1, "evenkeel: text has '\u6f22'"),
        (("write", "a", "-o", "no/such/folder/a.svg"), 2, "no folder"),
        (("complete", "a", "--state-out", "no/such/folder/a"), 2, "no folder"),
        (("write", "a", "-o", "a.doc"), 2, "a.doc ends in none of"),
        (("write", "a", "-o", "docs"), 2, "docs.* is a directory"),
        (("complete", "a", "--url", "localhost:8000"), 2, "begins with http:// or https://"),
        (("models", "--url", ","), 2, "begins with http:// or https://"),
        (("complete", "a", "--logit-bias", "much"), 2, "--logit-bias is no JSON"),
        (("complete", "a", "--logit-bias", "[" * 100_000), 2, "--logit-bias is no JSON"),
        (("complete", "a", "--state-in", "no/such/file"), 2, "no/such/file"),
        (("complete", "a", "--temperature", "nan"), 2, "--temperature is nan, .*no number"),
        (("complete", "a", "--logit-bias", '{"65": NaN}'), 2, "--logit-bias is no JSON: NaN"),
        (("complete", "a", "--logit-bias", '{"65": 1e999}'), 2, "--logit-bias is no JSON: 1e999"),
        (("write", "a", "-o", "a.svg", "--line-height", "inf"), 2, "--line-height is inf"),
        (("write", "a", "-o", "a.svg", "--page", "infx100"), 2, "--page infx100 is no WIDTH"),
        (("complete", "\udcff"), 2, "prompt is no text in the encoding"),
        (("models", "--url", "http://localhost:80x"), 2, "evenkeel: Invalid port"),
        (("models", "--api-key", "ek-\u00e9"), 2, "evenkeel: the API key has other .*ASCII"),
        (("models", "--api-key", "ek-1\nek-2"), 2, "evenkeel: the API key has other .*ASCII"),
        (("watch", "--every", "1e10"), 2, "86400"),
        (("watch", "--every", "-1"), 2, "--every"),
        (("copmlete",), 2, "copmlete"),
    ],
)
def test_what_went_wrong_is_told_in_a_line(
    url: str, words: tuple[str, ...], status: int, message: str
) -> None:
    result = evenkeel(url, *words)
    assert result.exit_code == status
    assert re.search(message, result.stderr)
    assert "Traceback" not in result.output
    assert "ek-" not in result.stderr
    assert not result.stdout


def test_input_that_is_no_text_is_refused(url: str) -> None:
    result = evenkeel(url, "complete", "-", given=b"\xff")
    assert (result.exit_code, "no UTF-8" in result.stderr) == (2, True)


def test_a_state_that_is_no_text_is_refused(url: str, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"\xff\xfe")
    result = evenkeel(url, "complete", "--state-in", str(tmp_path / "state"))
    assert (result.exit_code, "--state-in" in result.stderr) == (2, True)


def test_lines_that_are_not_finished_are_told(service: Scripted, tmp_path: Path) -> None:
    head = {"lines": ["an even", "keel"], "seed": 1}
    ends = [{"line": n, "points": [], "finish_reason": how} for n, how in enumerate(_ENDS)]
    service.script = [streamed([head, *ends, {"usage": {}}, "[DONE]"])]
    result = evenkeel(
        service.url, "write", "an even keel", "-m", "m", "-o", str(tmp_path / "a.json")
    )
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert re.findall("not finished: (.*)", result.stderr) == ["an even"]


def test_nobody_there_is_a_failure() -> None:
    result = evenkeel("http://127.0.0.1:1", "models")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.startswith("evenkeel: no answer from http://127.0.0.1:1: ")


def test_a_reader_that_has_enough_ends_it_quietly(url: str) -> None:
    with _process(url, "complete", "RO", "--max-tokens", "60000") as process:
        assert process.stdout
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.wait(30) == 1
        assert process.stderr
        assert process.stderr.read() == b""


def test_an_interrupt_ends_it_quietly(url: str) -> None:
    with _process(url, "complete", "RO", "--max-tokens", "60000", "--json") as process:
        assert process.stdout
        # So that it cannot have written all before it is interrupted.
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


@pytest.mark.parametrize("verb", ["", "complete", "write", "watch", "models", "attest"])
def test_help_tells_of_everything(verb: str) -> None:
    out = _out("", *filter(None, [verb]), "--help")
    assert "\x1b" not in out
    assert "--help" in out


def test_of_a_closed_standard_output_it_is_no_success(url: str) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *_COMMAND, "models"]
    ended = subprocess.run(
        command, cwd=_ROOT, env=os.environ | {"EVENKEEL_URL": url}, capture_output=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (1, b"evenkeel: standard output is closed\n")


@pytest.mark.parametrize("verb", ["attest", "complete", "models", "read", "watch"])
def test_no_verb_that_prints_asks_anything_without_a_standard_output(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clients.asking.sys", SimpleNamespace(stdout=None))  # as Python has it
    result = evenkeel("http://127.0.0.1:1", verb)
    assert (result.exit_code, result.stderr) == (1, "evenkeel: standard output is closed\n")


_on_a_full_device = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="no device that is always full"
)


@_on_a_full_device
def test_a_full_device_is_told_in_a_line(url: str) -> None:
    command = [*_COMMAND, "complete", "ROMEO", "--max-tokens", "5"]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            command,
            cwd=_ROOT,
            # Unbuffered output is not tried again at the end.
            env=os.environ | {"EVENKEEL_URL": url, "PYTHONUNBUFFERED": ""},
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert ended.returncode == 1
    assert ended.stderr == b"evenkeel: [Errno 28] No space left on device\n"


@_on_a_full_device
@pytest.mark.parametrize("words", [("models",), ("attest", "letters"), ("watch", "--count", "1")])
def test_every_verb_tells_of_a_full_device(
    url: str,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(SystemExit, match="1"):
            main([*words, "--url", url])
    assert capsys.readouterr().err == "evenkeel: [Errno 28] No space left on device\n"
