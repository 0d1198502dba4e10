"""Which kernels and what memory training takes on which machine, and which signals wait for it."""

import argparse
import ctypes
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import pytest
import torch

from training import command
from training.machine import (
    Terminated,
    deferred_signals,
    memory_shortage,
    terminated_as_interrupted,
    use_fast_float32,
)


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = torch.backends.mkldnn.matmul.fp32_precision
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    yield
    torch.backends.mkldnn.matmul.fp32_precision = before


@pytest.mark.parametrize(
    ("machine", "amx", "set_"),
    [
        ("x86_64", False, True), ("AMD64", False, True), ("x86_64", True, False),
        ("aarch64", False, False), ("arm64", False, False),
    ],
)  # fmt: skip
def test_float32_stays_float32(
    monkeypatch: pytest.MonkeyPatch, machine: str, amx: bool, set_: bool
) -> None:
    """The setting allows bfloat16, which only x86 without AMX does not take it for."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_tile": amx})
    use_fast_float32()
    assert (torch.backends.mkldnn.matmul.fp32_precision == "bf16") == set_


def test_every_command_computes_with_those_kernels_and_keeps_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = list[str]()
    for name in ("use_fast_float32", "keep_freed_memory"):
        monkeypatch.setattr(command, name, partial(done.append, name))
    parser = argparse.ArgumentParser()
    parser.set_defaults(command=lambda options: done.append("what was asked for"))
    assert command.run(parser, []) == 0
    assert done == ["use_fast_float32", "keep_freed_memory", "what was asked for"]


_AGAIN = """
import ctypes, resource
from training.machine import keep_freed_memory

keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def mapped(size):
    before = faults()
    block = ctypes.c_void_p(libc.malloc(size))
    ctypes.memset(block, 1, size)
    libc.free(block)
    return faults() - before

print(mapped(64 << 20), max(mapped(64 << 20) for _ in range(10)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's alone")
def test_memory_that_was_freed_is_mapped_no_second_time() -> None:
    """Not by itself, nor given back from the end of what is mapped: the kernel has no page of it
    to make again."""
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("glibc's alone")
    run = [sys.executable, "-c", _AGAIN]
    told = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    first, again = map(int, told.split())
    assert again < first / 4


@pytest.fixture
def came() -> Iterator[list[int]]:
    """The numbers of the signals that another's handler of SIGTERM was given; Ctrl-C is heard."""
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    yield came
    signal.signal(signal.SIGTERM, before)
    signal.signal(signal.SIGINT, usual)


def test_a_signal_ends_a_training_alone_and_is_its_callers_again(came: list[int]) -> None:
    callers = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Terminated), terminated_as_interrupted():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is callers
    assert came == []


def test_a_signal_that_was_held_back_is_its_handlers(came: list[int]) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    with deferred_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        assert came == []
    assert came == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_terminal_that_is_closed_waits_as_well(came: list[int]) -> None:
    """In the midst of an update it would leave half of one to be saved."""
    before = signal.signal(signal.SIGHUP, lambda number, frame: came.append(number))
    try:
        with deferred_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert came == []
        assert came == [signal.SIGHUP]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_nobody_handles_is_raised_after_it_was_held_back(
    monkeypatch: pytest.MonkeyPatch, came: list[int]
) -> None:
    monkeypatch.setattr(signal, "raise_signal", came.append)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with deferred_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        assert came == []
    assert came == [signal.SIGTERM]


@pytest.mark.parametrize("waits", [terminated_as_interrupted, deferred_signals])
def test_what_is_ignored_stays_so(
    came: list[int], waits: Callable[[], AbstractContextManager[object]]
) -> None:
    """`nohup` has a training go on after its terminal was closed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with waits() as heard:
        os.kill(os.getpid(), signal.SIGTERM)
    assert not heard
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


@pytest.mark.parametrize("waits", [terminated_as_interrupted, deferred_signals])
def test_a_training_in_a_thread_asks_for_no_signal(
    came: list[int], waits: Callable[[], AbstractContextManager[object]]
) -> None:
    done: list[bool] = []

    def train() -> None:
        with waits():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append(True)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join(60)
    assert (done, came) == ([True], [signal.SIGTERM])


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_sigterm_does_not_cut_short_what_is_kept_after_a_signal(
    came: list[int], first: signal.Signals
) -> None:
    def kept() -> None:
        try:
            os.kill(os.getpid(), first)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            came.append(-1)

    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        kept()
    assert came == [-1]
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: not enough: 9 bytes\nat 0"),
            "not enough: 9 bytes",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried 9 bytes\nat 0"),
            "CUDA out of memory. Tried 9 bytes",
        ),
        (MemoryError(), "it has run out"),
        (RuntimeError("shapes do not fit"), None),
        (RuntimeError(), None),
    ],
)
def test_too_little_memory_is_told_in_a_line_by_its_reason(
    error: Exception, told: str | None
) -> None:
    assert memory_shortage(error) == told
