"""Texts of several lines that people wrote: which are read, and what is counted of them."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.legibility.held_out import VALIDATION_FRACTION
from lab.reading import several
from training.ink.corpus import is_held_out
from training.ink.line import Line, Stroke

_NAMES = [f"source/writer{number}" for number in range(200)]
_WRITER = next(name for name in _NAMES if is_held_out(name, VALIDATION_FRACTION))
_LEARNED = next(name for name in _NAMES if not is_held_out(name, VALIDATION_FRACTION))


def _row(strokes: int, down: float) -> list[Stroke]:
    """Letters of two arcs side by side, so far down."""
    arcs = np.array([[0, 0], [2, 10], [4, 0], [6, 10], [8, 0]], np.float32)
    return [arcs + np.float32([12 * number, -down]) for number in range(strokes)]


def _text(text: str, *rows: int) -> Line:
    strokes = [s for number, row in enumerate(rows) for s in _row(row, 40.0 * number)]
    return Line(text, tuple(strokes), _WRITER, "source", 100.0)


_PAGE, _ONE = _text("ab cde", 2, 3), _text("fgh i", 5)


def test_only_texts_that_nobody_learned_from_and_a_reader_knows_are_read() -> None:
    refused = [
        replace(_PAGE, writer=_LEARNED), replace(_PAGE, text="é è"), replace(_PAGE, text="a"),
        replace(_PAGE, text="a\tb"), replace(_PAGE, strokes=()),
    ]  # fmt: skip
    assert several.held_out_texts([*refused, _PAGE, _ONE]) == [_PAGE, _ONE]
    # A pen that touched nothing once is no reason to leave a text out.
    touched = replace(_ONE, strokes=(*_ONE.strokes, _ONE.strokes[0][:0]))
    assert several.held_out_texts([touched]) == [touched]


def test_a_text_is_read_line_by_line_and_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two lines one is said right; as one line nothing of them is."""

    def says(reader: Any, strokes: Sequence[Stroke]) -> str:
        first = strokes[0][0, 1] == 0
        return {(2, True): "ab", (3, False): "xde", (5, True): "fgh i"}[len(strokes), first]

    monkeypatch.setattr(several, "read_strokes", says)
    told = several.measure(None, [_PAGE, _ONE])  # type: ignore[arg-type]
    assert (told["texts"], told["several lines"]) == (2, 1)
    by_line, as_one = told["line by line"], told["as one line"]
    assert (by_line["all"]["edits"], by_line["of several lines"]["edits"]) == (1, 1)
    assert by_line["of several lines"]["characters"] == 6
    assert as_one["all"]["edits"] == as_one["of several lines"]["edits"] == 6


def test_texts_of_one_line_each_say_nothing() -> None:
    with pytest.raises(ValueError, match="several lines"):
        several.measure(None, [_ONE])  # type: ignore[arg-type]


def test_without_data_there_is_nothing_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENKEEL_DATA", raising=False)
    with pytest.raises(ValueError, match="EVENKEEL_DATA is not set"):
        several.run(argparse.Namespace(reader=Path("artifacts", "reader"), out=Path("unused")))
