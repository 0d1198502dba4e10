"""A model that was replaced leaves nothing behind: not itself, no memory, no threads, no files."""

import gc
import os
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import pytest

from service import leaving
from tests.service.changing import changing, process
from tests.service.serving import eventually

_RELOADS = int(os.environ.get("EVENKEEL_RELOADS", 10))  # `make soak` asks for more
_POOL = 6  # threads that loading is done on: they come one by one, and stay


def test_what_was_replaced_is_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: the garbage collector seldom looks at what is old, and a model is large."""
    left: list[bool] = []

    with changing(folder, runner="scan") as service:

        def parts() -> list[ReferenceType[Any]]:
            engine = service.models["letters"].engine
            return [ref(engine), ref(engine._slots.runner), ref(engine._slots.runner._plain)]

        monkeypatch.setattr(leaving, "give_back", lambda: left.append(any(p() for p in old)))
        gc.collect()
        gc.disable()
        try:
            for number in range(1, 4):
                service.text()
                list(service.streamed(n=2))
                old = parts()
                assert service.tell("reload").status_code == 200
                assert eventually(lambda number=number: len(left) == number)
        finally:
            gc.enable()
    assert left == [False] * 3


def test_reloads_leave_no_memory_threads_or_files(folder: Path) -> None:
    with process(folder) as (service, own):

        def reload(times: int) -> None:
            for _ in range(times):
                assert service.tell("reload").status_code == 200
                service.text()

        reload(5)
        memory, threads, files = _held(own.pid)
        reload(_RELOADS)
        assert eventually(lambda: _held(own.pid)[2] <= files)
        assert _held(own.pid)[1] <= threads + _POOL
        assert _held(own.pid)[0] - memory < 12 << 20


def _held(process: int) -> tuple[int, int, int]:
    """Resident bytes, threads and open files."""
    facts = Path("/proc") / str(process)
    pages = int((facts / "statm").read_text().split()[1])
    threads, files = (len(list(facts.glob(f"{of}/*"))) for of in ("task", "fd"))
    return pages * os.sysconf("SC_PAGE_SIZE"), threads, files
