"""What is typed after `evenkeel`, and what a shell makes of it."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager
from errno import ENOSYS, ENOTSUP, EPERM
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
import typer
from typer.main import get_command

from clients.client import Client
from clients.command import main
from clients.files import FORMATS, format_of, require_place, save
from clients.options import require_sayable
from service.http.document import VERSION
from service.ink.schemas import Format
from tests.clients.commands import evenkeel
from tests.clients.scripted import Scripted, answered, refusal, streamed

_ROOT = Path(__file__).parents[2]
_PAGE = streamed([
    {"lines": ["a"], "seed": 1}, {"line": 0, "points": [[0, 0, 1]], "finish_reason": "stop"},
    {"usage": {}}, "[DONE]",
])  # fmt: skip
_UNREADABLE = "\udcff\udcfe"  # two bytes that are no UTF-8, as Python has them


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"prompt": _UNREADABLE}, "prompt"),
        ({"prompt": "\ud800"}, "prompt"),
        ({"text": "\udfff"}, "text"),
        ({"text": f"a{_UNREADABLE}"}, "text"),
        ({"stop": ["a", _UNREADABLE]}, "--stop"),
        ({"best_by": _UNREADABLE}, "--best-by"),
        ({"style": {"strokes": [], "text": _UNREADABLE}}, "--style"),
        ({"logit_bias": {_UNREADABLE: 1}}, "--logit-bias"),
    ],
)
def test_what_is_no_text_is_named(asked: dict[str, Any], named: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"^{named} is no text"):
        require_sayable(asked)
    require_sayable({"prompt": "naïve 🦉", "stop": ["a"], "logit_bias": {"65": 1}, "top_p": 0.5})


@pytest.mark.parametrize(
    "words", [("complete", "a", "-m", _UNREADABLE), ("attest", _UNREADABLE)], ids=str
)
def test_a_name_that_is_no_text_is_told_plainly(words: tuple[str, ...]) -> None:
    result = evenkeel("http://127.0.0.1:1", *words)
    assert (result.exit_code, "is no text in the encoding" in result.stderr) == (2, True)


def test_a_place_that_cannot_be_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.svg").symlink_to(tmp_path / "gone" / "a.svg")
    for out, why in (
        (tmp_path / "a.svg", "no folder"),
        (tmp_path / f"{'a' * 252}.svg", "255 byte"),
        (tmp_path / f"{'é' * 126}.svg", "255 byte"),  # of 130 letters
    ):
        result = evenkeel("http://127.0.0.1:1", "write", "a", "-m", "m", "-o", str(out))
        assert result.exit_code == 2
        assert why in " ".join(result.stderr.replace("│", " ").split())
    require_place(tmp_path / f"{'a' * 251}.svg")


def test_the_end_of_a_file_is_not_written(service: Scripted, tmp_path: Path) -> None:
    words = ("write", "-m", "m", "-o", str(tmp_path / "a.json"))
    service.script = [_PAGE]
    assert evenkeel(service.url, *words, given=" one\n\ntwo \r\n\n").exit_code == 0
    assert service.requests[-1]["text"] == " one\n\ntwo "
    service.script = [_PAGE]  # what is no file has no end
    assert evenkeel(service.url, "write", "one\n", *words[1:]).exit_code == 0
    assert service.requests[-1]["text"] == "one\n"
    service.script = [_PAGE]  # and one who writes nothing takes none from others
    assert evenkeel(service.url, "write", "", *words[1:], given="one").exit_code == 0
    assert service.requests[-1]["text"] == ""


@pytest.mark.parametrize("style", ["ada", "token-1_x="])
def test_a_file_does_not_hide_a_hand_of_its_name(
    service: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / style).write_text("no JSON")
    words = ("write", "a", "-m", "m", "-o", "a.json")
    service.script = [_PAGE] * 3
    assert evenkeel(service.url, *words, "--style", style).exit_code == 0
    assert service.requests[-1]["style"] == style
    (tmp_path / "hand.json").write_text(json.dumps({"text": "a", "strokes": []}))
    (tmp_path / "hand").write_text(json.dumps({"text": "b", "strokes": []}))
    for file, text in (("hand.json", "a"), ("./hand", "b")):
        assert evenkeel(service.url, *words, "--style", file).exit_code == 0
        assert service.requests[-1]["style"] == {"text": text, "strokes": []}
    missing = evenkeel(service.url, *words, "--style", "missing.json")
    assert missing.exit_code == 2
    assert "missing.json" in missing.stderr


def test_all_models_that_are_named_are_attested(service: Scripted) -> None:
    verdict = {"ok": True, "max_error": 1e-6, "bound": 1e-5, "steps": 3}
    service.script = [refusal(404), answered(verdict)]
    result = evenkeel(service.url, "attest", "no/such", "reader")
    assert result.exit_code == 1
    asked = [head.split()[1] for head in service.headers]
    assert asked == ["/v1/models/no%2Fsuch/attest", "/v1/models/reader/attest"]
    assert result.stderr == "evenkeel: told 404\n"
    assert result.stdout.split()[:2] == ["reader", "ok,"]


def test_a_password_of_an_address_is_not_shown() -> None:
    url = "http://me:secret@127.0.0.1:1,http://me:secret@127.0.0.1:2"
    for told, shown in (
        (url, "127.0.0.1:2"),
        ("ftp://me:secret@host", "evenkeel: 'host' is no address"),
        ("me:secret@host:80, me:secret@other", "http://user:password@host"),
    ):
        result = evenkeel(told, "models")
        assert result.exit_code
        assert "secret" not in result.stderr
        assert shown in result.stderr


@pytest.mark.parametrize("password", ["hush/1", "hush?1", "hush#1", "1/hush"])
def test_of_a_password_that_makes_an_address_none_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    """As of one in base64: what is before its first / is no port."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    url = f"http://me:{password}@127.0.0.1:1"
    told = [evenkeel(url, "models"), evenkeel(f"http://127.0.0.1:1,{url}", "models")]
    monkeypatch.setenv("HTTP_PROXY", url)
    if not password[0].isdigit():  # else it is another proxy, with a path, which none has
        told += [evenkeel("http://far.example", "models")]
    for result in told:
        assert (result.exit_code, "%2F" in result.stderr) == (2, True), result.stderr
        assert "hush" not in result.stderr
    monkeypatch.setenv("HTTP_PROXY", url.replace("http", "gopher"))
    assert "hush" not in evenkeel("http://far.example", "models").stderr


@pytest.mark.parametrize(
    "url",
    [
        *("http://me:hush,1@host", "http://me:70000,hush@host", "http://me:7,hush/1@host"),
        *("http://me:1,ftp:hush@host", "me:hush/1@host:80", "http:/me:hush@host", "hush/1@host"),
    ],
)
def test_a_password_with_a_comma_or_in_no_address_is_not_shown(url: str) -> None:
    """As it parts two addresses; and who leaves a slash out is told what one is."""
    for told in (evenkeel(url, "models"), evenkeel(f"http://127.0.0.1:1, {url}", "models")):
        assert (told.exit_code, "http://user:password@host" in told.stderr) == (2, True), told
        assert re.search("hush|7,|70000", told.stderr) is None


@pytest.mark.parametrize("password", ["secret", "sec@secret", "sec%40secret"])
def test_a_password_is_not_shown_when_a_proxy_answers_by_itself(
    service: Scripted, password: str
) -> None:
    url = service.url.replace("//", f"//me:{password}@")
    for said, told in (
        (b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", "502 Bad Gateway from"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", "what"),
    ):
        service.script = [said]
        stderr = evenkeel(url, "models").stderr
        assert stderr.startswith(f"evenkeel: {told} {service.url}")
        assert "sec" not in stderr


def test_a_user_in_an_address_leaves_no_place_for_a_key(service: Scripted) -> None:
    url = service.url.replace("//", "//me:secret@")
    service.script = [answered({"data": []})]
    for urls in (url, f"{service.url},{url}"):
        told = evenkeel(urls, "models", "--api-key", "ek-1")
        assert (told.exit_code, "no place for an API key" in told.stderr) == (2, True)
    assert not service.headers
    assert evenkeel(url, "models").exit_code == 0


def test_an_address_asks_what_it_says(service: Scripted) -> None:
    """A port is cut to 16 bits on its way, and a path behind a question mark is none."""
    service.script = [answered({"data": []})] * 4
    beyond = f"http://127.0.0.1:{httpx.URL(service.url).port + 65_536}"  # type: ignore[operator]
    for url, why in (
        (beyond, "is no port"),
        (f"http://127.0.0.1:1,{beyond}", "is no port"),
        ("http://127.0.0.1:0", "0 is no port"),
        ("http://a..b", "'a..b' is no name of a machine"),  # what a resolver is not asked for
        (f"http://{'a' * 64}.example", "is no name of a machine"),
        (f"{service.url}?a=b", "has a ? or #"),
        (f"{service.url}/?", "has a ? or #"),
        (f"{service.url}/#a", "has a ? or #"),
        (f"{service.url}/@a", "in a path @ is %40"),
        (f"{service.url},{service.url[7:]}", f"'{service.url[7:]}' is no address"),
        ("http://", "'http://' is no address"),
    ):
        told = evenkeel(url, "models")
        assert (told.exit_code, why in told.stderr) == (2, True), told.stderr
    assert not service.headers
    assert evenkeel(f"{service.url}/", "models").exit_code == 0
    assert evenkeel(f"{service.url}/%40a", "models").exit_code == 0
    assert service.headers[-1].startswith("GET /%40a/v1/models ")
    assert evenkeel("http://127.0.0.1:65535", "models").exit_code == 1  # where nobody listens


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSLKEYLOGFILE"])
def test_a_file_of_the_environment_that_is_none_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an address without TLS too, as one client asks them all."""
    monkeypatch.setenv(name, str(tmp_path / "gone" / "file"))
    told = evenkeel("http://127.0.0.1:1", "models")
    assert (told.exit_code, name in told.stderr) == (2, True), told


def test_what_does_not_fit_leaves_the_old_file_as_it_was(
    tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    """A state that is read from the same file is the only one there is."""
    file = tmp_path / "romeo.state"
    file.write_bytes(b"old")
    file.chmod(0o640)
    (tmp_path / "link").symlink_to(file)
    with full_disk(1000), pytest.raises(OSError, match="too large"):
        save(tmp_path / "link", bytes(2000))
    assert file.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2  # nothing of the new one is left
    save(tmp_path / "link", b"new")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"new", 0o640)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "romeo.state"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    save(pipe, b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert pipe.is_fifo()
    reader, writer = os.pipe()
    save(Path(f"/dev/fd/{writer}"), b"newer")
    assert os.read(reader, 10) == b"newer"
    os.close(reader)
    os.close(writer)


def test_what_takes_a_files_place_is_at_no_moment_for_other_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes, write, replace = list[int](), Path.write_bytes, Path.replace

    def written(path: Path, content: bytes) -> int:
        size = write(path, content)
        modes.append(path.stat().st_mode & 0o777)
        return size

    def replaced(path: Path, place: Path) -> Path:
        modes.append(path.stat().st_mode & 0o777)
        return replace(path, place)

    monkeypatch.setattr(Path, "write_bytes", written)
    monkeypatch.setattr(Path, "replace", replaced)
    for mode in (0o600, 0o640):
        (tmp_path / f"{mode}").touch(mode)
        (tmp_path / f"{mode}").chmod(mode)
        save(tmp_path / f"{mode}", b"new")
    assert modes == [0o600, 0o600, 0o600, 0o640]


def test_two_processes_of_one_number_keep_each_what_was_asked_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of two containers have that share a folder."""
    write = Path.write_bytes

    def written(path: Path, content: bytes) -> int:
        size = write(path, content)
        monkeypatch.setattr(Path, "write_bytes", write)
        save(tmp_path / "b", b"of the other")
        return size

    monkeypatch.setattr(Path, "write_bytes", written)
    save(tmp_path / "a", b"of the one")
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert kept == {"a": b"of the one", "b": b"of the other"}


def test_a_link_that_somebody_laid_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into a folder where everybody may, as /tmp, under the name that the new file would have."""
    (tmp_path / "mine").write_bytes(b"mine")
    laid, touch = list[Path](), Path.touch

    def touched(path: Path, *how: Any, **more: Any) -> None:
        path.symlink_to(tmp_path / "mine")
        laid.append(path)
        touch(path, *how, **more)

    (tmp_path / f".evenkeel-{os.getpid()}").symlink_to(tmp_path / "mine")
    save(tmp_path / "page.svg", b"new")
    monkeypatch.setattr(Path, "touch", touched)
    with pytest.raises(OSError, match="exists"):
        save(tmp_path / "page.svg", b"newer")
    assert laid
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert (tmp_path / "page.svg").read_bytes() == b"new"


@pytest.mark.parametrize("number", [EPERM, ENOTSUP, ENOSYS])  # each is what some mounts say
def test_what_was_asked_for_is_kept_where_files_cannot_have_permissions_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As on some mounts: a page takes minutes, and was lost. It is for its owner alone then."""
    file = tmp_path / "page.svg"
    file.touch(0o644)

    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(os, "chmod", refuse)
    save(file, b"new")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"new", 0o600)
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_that_cannot_be_written_to_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").touch()
    for may in (0, os.W_OK, os.X_OK):  # one that cannot be entered takes nothing either
        monkeypatch.setattr("clients.files.os.access", lambda _, how, may=may: how & may == how)
        with pytest.raises(typer.BadParameter, match=f"nor can anything in {tmp_path}"):
            require_place(tmp_path / "new")
    require_place(tmp_path / "there")


def test_a_file_in_a_folder_that_takes_no_other_is_written_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").touch()
    os.link(tmp_path / "there", tmp_path / "same")
    monkeypatch.setattr("clients.files.os.access", lambda *_: False)
    save(tmp_path / "there", b"new")
    assert (tmp_path / "same").read_bytes() == b"new"


def test_it_tells_the_release_that_the_service_names() -> None:
    release = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert evenkeel("http://unused", "--version").stdout == f"{release}\n"
    assert release == VERSION


def test_who_is_asked_and_for_how_long_is_what_the_guides_say() -> None:
    commands, api = ((_ROOT / "docs" / f"{n}.md").read_text("utf-8") for n in ("commands", "api"))
    verbs = get_command(main).commands.values()  # type: ignore[attr-defined]
    urls = [option.default for verb in verbs for option in verb.params if option.name == "url"]
    assert {*urls} == {*re.findall(r"`EVENKEEL_URL`, `(.*?)`", commands)}
    assert len(urls) == len(verbs)
    patience_s = signature(Client).parameters["patience_s"].default
    assert re.findall(r"`patience_s`, (\d+) s ", api) == [str(patience_s)]


def test_every_format_of_ink_has_an_ending_and_every_ending_is_told() -> None:
    assert set(FORMATS.values()) == set(get_args(Format))
    commands = (_ROOT / "docs" / "commands.md").read_text("utf-8")
    (told,) = re.findall(r"^\| `evenkeel write .*? \| (.*) \|$", commands, re.M)
    assert re.findall(r"`(\..*?)`", told) == sorted(FORMATS, key=told.index)


@pytest.mark.parametrize(
    ("name", "format_"),
    [("a.plt", "hpgl"), ("a.hpgl", "hpgl"), ("a.nc", "gcode"), ("a.gcode", "gcode")],
)
def test_what_machines_call_a_format_is_it(tmp_path: Path, name: str, format_: str) -> None:
    assert format_of(tmp_path / name) == format_
