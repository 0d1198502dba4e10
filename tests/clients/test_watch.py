"""Probes of latency, one after the other."""

from collections.abc import Iterator
from typing import Any

import pytest

from clients.errors import Refused
from clients.watch import Row


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
