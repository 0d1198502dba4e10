"""However many keys there are, nobody who asks waits for more than their own."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from service.http import keys
from service.http.keys import Key, Keys, new_key
from tests.service.serving import bearing, eventually, running, settings


def _calls(work: Callable[[], object]) -> int:
    """How many functions are called meanwhile."""
    events = list[str]()
    sys.setprofile(lambda frame, event, of: events.append(event))
    try:
        work()
    finally:
        sys.setprofile(None)
    return sum(event in ("call", "c_call") for event in events)


@pytest.mark.parametrize("presented", ["key 0", "key 9", "none"])
def test_a_key_is_found_as_fast_among_thousands(tmp_path: Path, presented: str) -> None:
    """Each was compared, for every request: of 100,000 they took some 12 ms."""
    counts = list[int]()
    for many in (10, 2000):
        file = tmp_path / f"{many}.toml"
        hashes = [sha256(f"key {i}".encode()).hexdigest() for i in range(many)]
        file.write_text("".join(f"[k{i}]\nsha256 = '{h}'\n" for i, h in enumerate(hashes)))
        known = Keys(file)
        found = known.find(presented)
        assert (found and found[0]) == {"key 0": "k0", "key 9": "k9"}.get(presented)
        counts.append(_calls(lambda known=known: known.find(presented)))  # type: ignore[misc]
    assert counts[0] == counts[1]


def test_a_file_is_read_again_beside_the_event_loop(
    letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 8,000 keys takes 0.15 s; and where a look fails, the next reads what that has not."""
    file, read, on_loop = tmp_path / "keys.toml", keys.read_keys, list[bool]()
    new_key(file, "first")

    def noted(path: Path) -> dict[str, Key]:
        on_loop.append(False)
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            on_loop[-1] = True
        if len(on_loop) == 2:
            raise MemoryError
        return read(path)

    monkeypatch.setattr(keys, "read_keys", noted)
    monkeypatch.setattr(keys, "_LOOK_EVERY_S", 0.01)
    with running(settings(letters, keys=file)) as service:
        second = bearing(new_key(file, "second"))
        models = "/v1/models"
        assert eventually(lambda: service.client.get(models, headers=second).status_code == 200)
    assert on_loop[1:] == [False, False]
