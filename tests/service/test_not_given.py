"""What the operating system would not give for a moment, a descriptor, memory, a thread, is asked
for again: the service needs no other change for that."""

import asyncio
import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from errno import EACCES, EIO, EMFILE, ENFILE, ENOMEM
from pathlib import Path

import pytest

from contract.manifest import MANIFEST
from service.workers import Workers
from tests.service.altered import copy_of, edit_manifest
from tests.service.changing import changing
from tests.service.conftest import Command
from tests.service.serving import eventually

_NO_THREAD = "can't start new thread"
_NO_ROOM_BYTES = 1 << 46  # for the stack of a thread


def _change(artifact: Path) -> None:
    edit_manifest(artifact, lambda manifest: manifest["provenance"].update(seen="no"))


@contextmanager
def _unreadable(file: Path, number: int) -> Iterator[None]:
    """Meanwhile nobody can open it, for the reason of this number."""
    with pytest.MonkeyPatch.context() as busy:

        def opened(path: Path, *how: int, real: Callable[..., int] = os.open) -> int:
            if path == file:
                raise OSError(number, os.strerror(number), str(path))
            return real(path, *how)

        busy.setattr(os, "open", opened)
        yield


@contextmanager
def _no_thread_for(name: str) -> Iterator[None]:
    """Meanwhile the system starts no thread whose name begins so."""
    with pytest.MonkeyPatch.context() as crowded:

        def start(
            thread: threading.Thread, real: Callable[..., None] = threading.Thread.start
        ) -> None:
            if thread.name.startswith(name):
                raise RuntimeError(_NO_THREAD)
            real(thread)

        crowded.setattr(threading.Thread, "start", start)
        yield


@contextmanager
def _no_thread() -> Iterator[None]:
    """Meanwhile the system starts none at all: whoever asks for one gets a stack for which there is
    no memory."""
    threads, before, none = ctypes.CDLL(None), *(ctypes.create_string_buffer(256) for _ in "12")
    threads.pthread_getattr_default_np(before)
    threads.pthread_attr_init(none)
    threads.pthread_attr_setstacksize(none, ctypes.c_size_t(_NO_ROOM_BYTES))
    threads.pthread_setattr_default_np(none)
    try:
        yield
    finally:
        threads.pthread_setattr_default_np(before)


@pytest.mark.parametrize("number", [EMFILE, ENFILE, ENOMEM, EIO])
def test_what_the_system_would_not_read_is_served_from_the_next_look(
    folder: Path, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    """It was given up until the folder changed once more."""
    file, why = folder / "letters" / "step.onnx", os.strerror(number)
    with changing(folder) as service:
        _change(folder / "letters")
        with _unreadable(file, number):
            for _ in range(2):
                service.look()
                assert service.standing()["failed"] == f"{file} cannot be read: {why}"
                assert service.text()[0]
        assert caplog.text.count(why) == 1  # told once, without a traceback
        assert "Traceback" not in caplog.text
        service.look()
        assert (service.standing()["failed"], service.reloads("ok")) == (None, 1)


def test_what_the_system_would_not_read_at_the_start_is_served_later(
    folder: Path, artifacts: Path
) -> None:
    file = copy_of(artifacts / "noise", folder) / MANIFEST
    with ExitStack() as begun:
        with _unreadable(file, EMFILE):
            service = begun.enter_context(changing(folder))
            assert service.ready() == (200, "ok; failed: noise")
        service.look()
        assert service.standing("noise")["state"] == "ready"


def test_what_may_not_be_read_is_not_tried_at_every_look(folder: Path) -> None:
    """To read a folder up to such a file may take seconds; and who allows it makes a change."""
    with changing(folder) as service:
        _change(folder / "letters")
        with _unreadable(folder / "letters" / "step.onnx", EACCES):
            for _ in range(2):
                service.look()
        assert service.reloads("failed") == 1


def test_a_model_for_which_there_is_no_thread_is_served_from_the_next_look(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As where a container may have no more of them."""
    with changing(folder) as service:
        before = service.text()
        with _no_thread_for("engine-letters"):
            refused = service.tell("reload")
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_loaded")
            assert refused.json()["error"]["message"].endswith(f"letters: {_NO_THREAD}")
        assert service.text() == before
        assert "Traceback" not in caplog.text
        assert service.standing()["failed"] is not None
        service.look()
        assert service.standing()["failed"] is None
        assert service.text() == before


def test_a_model_is_not_given_up_where_onnxruntime_has_no_thread(
    folder: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """It takes its threads before the engine does, and as many as there are cores."""
    with changing(folder, threads=2) as service:
        service.look()  # which has a thread from now on
        _change(folder / "letters")
        with _no_thread():
            for _ in range(2):
                service.look()
                why = service.standing()["failed"]
                assert why.endswith("onnx: the system has no thread for onnxruntime")
        assert caplog.text.count("has no thread") == 1
        assert "Traceback" not in caplog.text
        service.look()
        assert (service.standing()["failed"], service.reloads("ok")) == (None, 1)
    assert "Falling back" not in capfd.readouterr().out


def test_a_model_is_proved_though_there_is_no_thread_to_end_a_run_that_takes_too_long(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its engine ended, and nothing but a change of its folder made another."""
    with changing(folder) as service:
        _change(folder / "letters")
        with _no_thread_for("Thread-"):  # as timers are called
            service.look()
        assert (service.standing()["failed"], service.reloads("ok")) == (None, 1)
        assert service.text()[0]
        assert "Traceback" not in caplog.text


def test_where_the_system_has_no_thread_for_more_work_those_there_are_do_it(folder: Path) -> None:
    """A reload, a picture and a table of likelihoods were a 500, a folder was given up, and an
    engine that was replaced was never stopped."""
    body = {"model": "letters", "max_tokens": 3, "logprobs": 1}
    with changing(folder) as service, _no_thread_for("beside"), _no_thread_for("aside"):
        assert service.tell("reload").status_code == 200
        assert service.client.post("/v1/completions", json=body).status_code == 200
        service.look()
        loop = service.app.state.watch._loop
        drawn = asyncio.run_coroutine_threadsafe(service.app.state.aside.do(int), loop)
        assert drawn.result(20) == 0
        assert eventually(lambda: not service.models._leaving.engines)


def test_work_waits_for_a_thread_where_there_is_no_other() -> None:
    go_on = threading.Event()
    with Workers(2, thread_name_prefix="few") as workers:
        waits = workers.submit(go_on.wait, 20)
        with _no_thread_for("few"):
            follows = workers.submit(int)
        assert not follows.done()
        go_on.set()
        assert (waits.result(20), follows.result(20)) == (True, 0)
    with (
        Workers(2, thread_name_prefix="few") as none,
        _no_thread_for("few"),
        pytest.raises(RuntimeError, match=_NO_THREAD),
    ):
        none.submit(int)


def test_a_service_that_has_no_thread_for_a_model_says_so_and_ends_with_2(
    command: Command, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with _no_thread_for("engine-letters"):
        status, _, told = command(EVENKEEL_ARTIFACTS=str(folder), EVENKEEL_PORT="0")
    assert status == 2
    assert told == f"error: {folder / 'letters'}: {_NO_THREAD}\n"
    assert "Traceback" not in caplog.text
