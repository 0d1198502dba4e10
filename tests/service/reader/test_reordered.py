"""Delayed strokes are read where they stand by a reader that has learned them so, where all the ink
is known: in `/v1/read` of a line alone, and where one of several draws is chosen."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from service.reader.model import ServedReader
from tests.service.altered import copy_of, edit_manifest
from tests.service.reader.lines import MODEL, ReaderService, Strokes, line
from tests.service.serving import running, settings

_INK = line()
# The same line, one of its letters drawn last.
_DELAYED = [*_INK[:4], *_INK[5:], _INK[4]]


@pytest.fixture(scope="module", params=[True, False], ids=["reordered", "as written"])
def told(
    request: pytest.FixtureRequest, inks: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ReaderService, bool]]:
    """A service of a reader whose manifest says so, and of one whose says nothing."""
    folder = tmp_path_factory.mktemp("read")
    copy = copy_of(inks / MODEL, folder)

    def edit(manifest: dict) -> None:
        del manifest["pieces"]["reordered"]
        if request.param:
            manifest["pieces"]["reordered"] = True

    edit_manifest(copy, edit)
    with running(settings(folder)) as started:
        yield ReaderService(started.app, started.client), request.param


def _confidences(answer: dict) -> list[tuple[str, float]]:
    return [(c["character"], c["confidence"]) for c in answer["characters"]]


def test_a_line_alone_is_read_in_its_order(told: tuple[ReaderService, bool]) -> None:
    reader, reordered = told
    here, there = (_confidences(reader.read(strokes=ink)) for ink in (_INK, _DELAYED))
    assert here
    assert (here == there) == reordered


def test_on_a_ruled_line_it_is_read_as_it_was_written(told: tuple[ReaderService, bool]) -> None:
    """As it is on `/v1/online`, where nobody knows what is to come."""
    reader, _ = told
    on_line = {"line_height": 60, "origin": [40, 90]}
    here, there = (_confidences(reader.read(strokes=i, **on_line)) for i in (_INK, _DELAYED))
    assert here != there


def test_a_draw_is_judged_in_its_order(told: tuple[ReaderService, bool]) -> None:
    reader, reordered = told
    model = reader.app.state.models[MODEL]
    assert isinstance(model, ServedReader)
    here, there = (_judged(reader, model, ink) for ink in (_INK, _DELAYED))
    assert (here == pytest.approx(there, abs=1e-4)) == reordered


def _judged(reader: ReaderService, model: ServedReader, ink: Strokes) -> float:
    assert reader.client.portal is not None
    strokes = [np.array(stroke) * (1 / 60, -1 / 60) + (-40 / 60, 1.5) for stroke in ink]
    return reader.client.portal.call(model.judge, "an even keel", strokes).log_likelihood
