"""The command `evenkeel` at an address where something else answers, or more than one model."""

from pathlib import Path
from typing import Any

import pytest

from tests.clients.commands import evenkeel
from tests.clients.scripted import Scripted, answered, streamed


def test_what_is_not_the_service_is_told(service: Scripted) -> None:
    service.script = [b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>"]
    result = evenkeel(service.url, "models")
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


def test_of_two_pens_the_one_that_serves_writes(service: Scripted, tmp_path: Path) -> None:
    pens = [
        {"id": name, "kind": "handwriting", "default": name == "a", "ready": name == "b"}
        for name in "abc"
    ]
    service.script = [answered({"data": pens}), streamed([{"lines": ["a"], "seed": 1}, "[DONE]"])]
    result = evenkeel(service.url, "write", "a", "-o", str(tmp_path / "a.json"))
    assert result.exit_code == 0, result.output
    assert service.requests[-1]["model"] == "b"
