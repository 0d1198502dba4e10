"""The command `evenkeel` at an address where something else answers, or more than one model."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.clients.commands import evenkeel
from tests.clients.scripted import Scripted, answered, refusal, streamed

_ESCAPES = "\x1b[2J\x9b1m\r\n\u202e"
_INK = {"lines": [_ESCAPES], "seed": 1}
_END = {"line": 0, "points": [], "finish_reason": "length"}
_UNREADABLE = _END | {"finish_reason": "unreadable"}
_ERROR = {"error": {"message": _ESCAPES, "type": "invalid_request_error"}}


def test_what_is_not_the_service_is_told(service: Scripted) -> None:
    service.script = [b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>"]
    result = evenkeel(service.url, "models")
    assert result.exit_code == 1
    assert result.stderr == f"evenkeel: what {service.url} answers is no JSON; is Evenkeel there?\n"


@pytest.mark.parametrize("verb", ["complete", "write"])
def test_a_page_in_the_place_of_a_stream_is_an_answer(
    service: Scripted, tmp_path: Path, verb: str
) -> None:
    service.script = [b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n"]
    out = ("-o", str(tmp_path / "a.svg")) if verb == "write" else ()
    result = evenkeel(service.url, verb, "a", "-m", "m", "--patience", "0", *out)
    assert result.exit_code == 1
    told = f"what {service.url} answers is no stream of events; is Evenkeel there?"
    assert result.stderr == f"evenkeel: {told}\n"


def test_a_stream_of_events_that_are_no_json_is_told(service: Scripted) -> None:
    service.script = [streamed(["hello"])]
    result = evenkeel(service.url, "complete", "a", "-m", "m", "--patience", "0")
    assert result.exit_code == 1
    assert result.stderr == f"evenkeel: what {service.url} answers is no JSON; is Evenkeel there?\n"


@pytest.mark.parametrize("words", [("models",), ("attest",), ("complete", "a"), ("watch",)])
@pytest.mark.parametrize("said", [{"data": [{"id": "m"}]}, {"status": "ok"}, [], None], ids=str)
def test_another_service_is_told_from_this_one(
    service: Scripted, words: tuple[str, ...], said: Any
) -> None:
    service.script = [answered(said)] * 3
    result = evenkeel(service.url, *words)
    assert result.exit_code == 1, result.output
    assert result.stderr == "evenkeel: what answers there is not Evenkeel\n"


def test_a_service_of_an_older_version_is_not_called_another(service: Scripted) -> None:
    """That of 0.1.0 does not tell which models are ready."""
    service.script = [answered({"data": [{"id": "m", "kind": "handwriting"}]})]
    result = evenkeel(service.url, "write", "a", "-o", "a.svg")
    assert result.exit_code == 1
    told = f"what {service.url} answers is not Evenkeel's, or another version's (KeyError: 'ready')"
    assert result.stderr == f"evenkeel: {told}\n"


_OTHERS = {
    "models": ({"data": [{"id": "m", "kind": "language"}]}, {}),
    "attest": (
        *([{"id": "m", "kind": "language", "ready": True}], {}),
        {"ok": True, "max_error": "none", "bound": 1, "steps": 1},
    ),
    "complete": (
        *([{"error": "bad"}], [{"choices": {}}], [[1]], [{"line": 0, "points": []}]),
        [{"choices": [{"index": 0, "text": "a", "resume": "soon"}]}],
    ),
    "write": (
        *([{"error": "bad"}], [[1]], [{"line": 0, "points": [[0, 0, 1]]}], [{"usage": {}}]),
        [{"lines": ["a"]}, {"line": 0, "points": [[0, 0]]}],
        [{"lines": ["a"]}, _END, {"drawing": "no seed"}],
        [{"lines": ["a"], "seed": float("inf")}, _END, {"drawing": "of a seed that is none"}],
    ),
}


@pytest.mark.parametrize("verb", _OTHERS)
def test_answers_of_other_shapes_are_told(service: Scripted, tmp_path: Path, verb: str) -> None:
    streams = verb in ("complete", "write")
    options = {"complete": ("a", "-m", "m"), "attest": ("m",)}
    options["write"] = ("a", "-m", "m", "-o", str(tmp_path / "a.svg"))
    for said in _OTHERS[verb]:
        service.script = [streamed([*said, "[DONE]"]) if streams else answered(said)]
        result = evenkeel(service.url, verb, *options.get(verb, ()))
        assert result.exit_code == 1, said
        assert re.match("evenkeel: what .* is not Evenkeel", result.stderr), said


@pytest.mark.parametrize("words", [("models",), ("attest", "m"), ("complete", "a", "-m", "m")])
def test_an_answer_that_is_nested_too_deep_to_be_read_is_told(
    service: Scripted, words: tuple[str, ...]
) -> None:
    deep = "[" * 100_000
    whole = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + deep.encode()
    service.script = [streamed([deep]) if words[0] == "complete" else whole]
    result = evenkeel(service.url, *words)
    assert result.exit_code == 1
    assert re.match("evenkeel: what .* is not Evenkeel", result.stderr)


def _listed(*names: str, **more: Any) -> bytes:
    model = {"kind": "language", "ready": True, "default": False, "parameters": 1} | more
    return answered({"data": [model | {"id": name} for name in names]})


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (("models",), [b"HTTP/1.1 502 \x1b[2J\x07\r\nconnection: close\r\n\r\n"]),
        (("models",), [answered({}).replace(b"200 OK", b"503 \x1b[2J")]),
        (("models",), [_listed(_ESCAPES, attestation=None)]),
        (("models",), [_listed("m", attestation=None, unproved=_ESCAPES)]),
        (("attest", "m"), [answered({"ok": False, "detail": _ESCAPES})]),
        (("attest", "m"), [refusal(400).replace(b"told 400", rb"\u001b2J")]),
        (("complete", "a", "-m", "m"), [streamed([_ERROR])]),
        (("complete", "a"), [_listed(_ESCAPES, "m")]),
        (("write", "a", "-m", "m"), [streamed([_INK, _END, {"drawing": ""}, "[DONE]"])]),
        (("write", "a", "-m", "m"), [streamed([_INK, _UNREADABLE, {"drawing": ""}, "[DONE]"])]),
        (("watch", "--count", "1"), [_listed(_ESCAPES)]),
    ],
)  # fmt: skip
def test_no_terminal_obeys_what_an_answer_has_told_of(
    service: Scripted, tmp_path: Path, words: tuple[str, ...], answers: list[bytes]
) -> None:
    service.script = [*answers, refusal(400, kind="invalid_request_error")]
    out = ("-o", str(tmp_path / "a.svg")) if words[0] == "write" else ()
    result = evenkeel(service.url, *words, *out, on_terminal=True)
    assert isinstance(result.exception, SystemExit | None)
    told = result.stderr + result.stdout
    assert r"\x1b" in told
    assert [letter for letter in told if not letter.isprintable() and letter != "\n"] == []
    if result.exit_code == 1 and words[0] != "watch":
        assert len(told.splitlines()) == len(answers) + told.count("asks")


def test_a_name_in_the_table_of_a_watch_stands_there_as_it_is(service: Scripted) -> None:
    names = ("[/b]", "[bold]a", ":smile:")
    service.script = [_listed(*names), *[refusal(400, kind="invalid_request_error")] * 4]
    result = evenkeel(service.url, "watch", "--count", "1")
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == list(names)


@pytest.mark.parametrize("words", [("read",), ("models",), ("watch", "--count", "1")])
def test_what_an_output_has_no_letters_for_is_no_fault_of_the_service(
    service: Scripted, words: tuple[str, ...]
) -> None:
    models = _listed(
        "\N{OWL}", kind="reader" if words[0] == "read" else "language", attestation=None
    )
    service.script = [models, answered({"text": "\N{OWL}"}), answered({})]
    result = evenkeel(service.url, *words, given=json.dumps([[[0, 0], [1, 1]]]), encoding="latin-1")
    told = "evenkeel: standard output is in latin-1, which has no '\\U0001f989'\n"
    assert (result.exit_code, result.stderr_bytes.decode("latin-1")) == (1, told)


@pytest.mark.parametrize(
    ("verb", "events"), [("complete", []), ("write", []), ("write", [{"lines": ["a"], "seed": 1}])]
)
def test_a_stream_that_ends_without_an_end_is_no_answer(
    service: Scripted, tmp_path: Path, verb: str, events: list[Any]
) -> None:
    service.script = [streamed([*events, "[DONE]"])] * 2
    out = ("-o", str(tmp_path / "a.svg")) if verb == "write" else ()
    result = evenkeel(service.url, verb, "a", "-m", "m", "--patience", "0", *out)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"evenkeel: no answer from {service.url}: the stream ended")


@pytest.mark.parametrize("body", [b"\xff\xfe\xff", b"no gzip"])
@pytest.mark.parametrize("words", [("models",), ("attest", "m"), ("watch", "--count", "1")])
def test_what_cannot_be_decoded_is_told(
    service: Scripted, words: tuple[str, ...], body: bytes
) -> None:
    coding = b"" if body[:1] == b"\xff" else b"content-encoding: gzip\r\n"
    service.script = [b"HTTP/1.1 200 OK\r\n%bcontent-length: 3\r\n\r\n%b" % (coding, body[:3])]
    result = evenkeel(service.url, *words)
    assert result.exit_code == 1, result.output
    assert re.match(r"evenkeel: (what .* is no JSON|no answer from .*: damaged)", result.stderr)


def test_of_two_pens_the_one_that_serves_writes(service: Scripted, tmp_path: Path) -> None:
    pens = [
        {"id": name, "kind": "handwriting", "default": name == "a", "ready": name == "b"}
        for name in "abc"
    ]
    service.script = [
        answered({"data": pens}),
        streamed([{"lines": ["a"], "seed": 1}, {}, "[DONE]"]),
    ]
    result = evenkeel(service.url, "write", "a", "-o", str(tmp_path / "a.json"))
    assert result.exit_code == 0, result.output
    assert service.requests[-1]["model"] == "b"
