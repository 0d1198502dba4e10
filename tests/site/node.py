"""A process of node that answers line by line: to begin one takes longer than most answers."""

import json
import os
import subprocess
from pathlib import Path
from threading import Timer
from typing import Any, Self

# Of a visitor in whose language a million is 1.000.000: the page is in English.
_ABROAD = os.environ | {"LC_ALL": "de_DE.UTF-8"}
Json = dict[str, Any]


class Node:
    """It is begun anew when an answer has failed, of which something may go on."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder, self._command = folder, ["node", *arguments]
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def answer(self, asked: Json, patience_s: float) -> Json:
        """Raises `AssertionError` where there is an error instead, or nothing in so long."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        ends = Timer(patience_s, self._process.kill)
        ends.start()
        line = self._process.stdout.readline()
        ends.cancel()
        answer: Json = json.loads(line or '{"error": "it does not end"}')
        if "error" in answer:
            self._end()
            self._begin()
            raise AssertionError(answer["error"])
        return answer

    def _begin(self) -> None:
        pipes: Json = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(self._command, cwd=self._folder, env=_ABROAD, **pipes)

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()
