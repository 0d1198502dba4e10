"""Ink that a line gathered while others shared its chunks."""

from pathlib import Path

import numpy as np

from service.engine.runners import ScanRunner, stack_rows
from service.engine.runtime import Runtime
from service.errors import NotReady
from service.ink.line import InkLine, InkPiece
from service.ink.model import InkModel
from service.ink.page import Portion
from tests.service.serving import running, settings

_NEVER_S = 1e9


def test_marks_that_come_when_all_else_was_told_are_of_the_last_character() -> None:
    marks = np.array([[5.0, 5, 0], [6, 4, 1]])
    ((character, points),) = Portion(0, marks, InkPiece("stop", character=3)).by_character()
    assert (character, points.tolist()) == (3, marks.tolist())


def test_ink_that_was_gathered_is_told_before_an_error(inks: Path) -> None:
    with running(settings(inks)) as service:
        pen = service.app.state.models["scrawl"]
        assert isinstance(pen, InkModel)
        pieces: list[InkPiece] = []
        line = InkLine("an even keel", pen.fresh(1), pen.manifest, pieces.append, bias=0.5)
        runner = ScanRunner(pen.artifact, Runtime("cpu", "scan", 1, 1))
        runner.load(0, line.state)
        drawn = 0
        for _ in range(2):
            steps = stack_rows([line.inputs(8)], axis=1)
            outputs = runner.run([0], steps, stack_rows([line.row], axis=0), filtered=False)
            assert not line.accept({name: array[:, 0] for name, array in outputs.items()})
            line.publish(_NEVER_S)
            drawn += 8
    assert len(pieces) == 1  # the first ink waits for nothing
    assert line.steps_expected() == 10 * len(line.text) - drawn
    line.fail(NotReady("the service is stopping"))
    *shown, last = pieces
    assert isinstance(last.error, NotReady)
    assert len(last.offsets) == 0
    assert last.character == shown[-1].character > 0  # nothing else is written meanwhile
    assert sum(len(piece.offsets) for piece in shown) == drawn
    assert all(piece.error is None for piece in shown)
    assert np.isfinite(np.concatenate([piece.offsets for piece in shown])).all()
