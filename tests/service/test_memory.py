"""Memory that nothing uses any more goes back to the system, and what stays delays nobody."""

import ctypes
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from service import app
from service.memory import give_back
from tests.service.serving import eventually, listening, settings

_MB = 1 << 20
_BLOCKS, _BLOCK_BYTES = 1024, 64 << 10  # too small to be mapped each by itself


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
    return pages * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's alone")
def test_what_was_freed_behind_something_in_use_is_given_back() -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("glibc's alone")
    libc.malloc.restype = ctypes.c_void_p
    blocks = [ctypes.c_void_p(libc.malloc(_BLOCK_BYTES)) for _ in range(_BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, _BLOCK_BYTES)
    kept = blocks.pop()
    try:
        for block in blocks:
            libc.free(block)
        before = _resident_bytes()
        give_back()
        assert before - _resident_bytes() > 40 * _MB
    finally:
        libc.free(kept)


def _told(script: str) -> str:
    """What a process of its own prints, whose malloc nothing was asked of before."""
    run = [sys.executable, "-c", script]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout


_LARGE = """
import ctypes
from pathlib import Path
from service.memory import keep_large_apart

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def made(size):
    block = ctypes.c_void_p(libc.malloc(size))
    ctypes.memset(block, 1, size)
    return block

{}
libc.free(made(24 << 20))  # as weights: up to here glibc would map none by itself from now on
blocks = [made(2 << 20) for _ in range(50)]
kept = blocks.pop()
before = resident()
for block in blocks:
    libc.free(block)
print((before - resident()) >> 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's alone")
def test_large_blocks_go_back_when_they_are_freed() -> None:
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("glibc's alone")

    def given_back_mb(first: str) -> int:
        return int(_told(_LARGE.format(first)))

    assert given_back_mb("") < 10
    assert given_back_mb("keep_large_apart()") > 90


_ARENAS = """
import ctypes, threading
from service.memory import keep_large_apart

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
{}
together = threading.Barrier(6)
threads = [threading.Thread(target=lambda: (libc.malloc(100), together.wait())) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's alone")
def test_threads_share_two_arenas() -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_info"):
        pytest.skip("glibc's alone")

    def arenas(first: str) -> int:
        return _told(_ARENAS.format(first)).count("<heap nr=")

    assert arenas("") > 2
    assert arenas("keep_large_apart()") == 2


_SETTLED = """
import gc, weakref
from service.memory import settle

class Circle:  # what only the garbage collector can free
    def __init__(self):
        self.itself = self

circle = Circle()
gone = weakref.ref(circle)
stays = [[] for _ in range(10_001)]
assert len(gc.get_objects()) > 10_000
settle()
assert len(gc.get_objects()) < 1000
del circle, stays
gc.collect()
assert gone() is not None
settle()
assert gone() is None
"""


def test_what_has_settled_is_looked_at_no_more_and_freed_all_the_same() -> None:
    """In a process of its own: in this one it would be all that the tests are made of."""
    assert _told(_SETTLED) == ""


def test_a_server_settles_when_it_is_ready_and_after_every_change(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[int] = []
    given: list[int] = []
    apart: list[float] = []
    monkeypatch.setattr(app, "settle", lambda: settled.append(threading.get_ident()))
    monkeypatch.setattr("service.leaving.give_back", lambda: given.append(len(settled)))
    monkeypatch.setattr(app, "keep_large_apart", lambda: apart.append(sys.getswitchinterval()))
    monkeypatch.setattr("tests.service.serving.create_app", app.create_alone)
    with listening(settings(artifacts)) as (url, _):
        assert eventually(lambda: len(settled) == 1)
        httpx.post(f"{url}/v1/models/letters/reload", timeout=30).raise_for_status()
        # The new model serves, and then the old one has ended.
        assert eventually(lambda: len(settled) == 3)
        assert eventually(lambda: given == [3])
    assert apart == [app._SWITCH_S]


_LIMITED = """
import resource, sys
from pathlib import Path
from service.artifact import load_artifact

artifact = load_artifact(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
print({name: len(content) for name, content in artifact.weights().items()})
"""


def test_files_are_read_where_the_largest_there_may_be_has_no_room(artifacts: Path) -> None:
    folder = str(artifacts / "letters")
    ran = subprocess.run(
        [sys.executable, "-c", _LIMITED, folder], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    size = (artifacts / "letters" / "model.safetensors").stat().st_size
    assert f"'model.safetensors': {size}" in ran.stdout
