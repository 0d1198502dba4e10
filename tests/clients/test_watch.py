"""Probes of latency, one after the other."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from rich.console import Console

from clients.errors import Refused
from clients.watch import Row, Watch


def test_an_interrupt_within_a_probe_leaves_what_was_known() -> None:
    class Fails:
        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            raise Refused("not now")

    class Hangs:
        def complete(self, **_: object) -> Iterator[dict[str, Any]]:
            raise KeyboardInterrupt

    row = Row("letters", "language")
    row.probe(Fails())
    with pytest.raises(KeyboardInterrupt):
        row.probe(Hangs())
    assert row.failure == "not now"


def test_a_terminal_of_80_columns_has_room_for_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Lists:
        def ask(self, *_: str) -> httpx.Response:
            models = [{"id": f"handwriting-{of}", "kind": "handwriting"} for of in ("int8", "2")]
            return httpx.Response(200, json={"data": models})

    watch = Watch(Lists())  # type: ignore[arg-type]
    row = watch._rows["handwriting-int8"]
    row.first_s.extend([0.1234, 0.2345])
    row.each_s.extend([0.0041051, 0.0041051])
    Console(width=80).print(watch._table())
    assert "…" not in capsys.readouterr().out
