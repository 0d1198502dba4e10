"""Legibility by hand and bias: the noise is the same in all of them, and a bad hand is told of."""

import argparse
import re
import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from contract.alphabets import LONGEST_LINE
from contract.ink import STYLES
from contract.manifest import WEIGHTS, sha256
from lab import __main__ as lab_commands
from lab.__main__ import main
from lab.legibility import reading
from lab.legibility.reading import PAGE, Errors, figures
from lab.legibility.write_ink import Hand, Pen, Written
from lab.reading import accents, accents_sheet, hands, hands_sheet, shown
from lab.reading.shown import Readers, as_shown
from tests.service.altered import edit_manifest
from tests.training.legible import SHOWN_PX
from training.figures import pyplot

_STROKE = np.array([[1, 0, 0], [1, 2, 1]], np.float32)


@pytest.fixture
def scrawl(made_once: Callable[[str], Path], tmp_path: Path) -> Path:
    """A pen with stored hands, to be changed."""
    return Path(shutil.copytree(made_once("scrawl"), tmp_path / "scrawl"))


class TellingPen:
    """Writes a stroke as many times as its hand says, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], float, int]] = []

    def write(self, texts: list[str], bias: float, seed: int, hands: list[int]) -> list[Written]:
        self.asked.append((texts, bias, seed))
        none = np.zeros(2, int)
        return [Written(np.tile(_STROKE, (n, 1)), True, _STROKE, none > 0, none) for n in hands]


def test_every_hand_has_the_same_lines_and_noise_and_its_own_errors() -> None:
    pen, texts = TellingPen(), {"plain": ["even keel"], "invented": ["5 keels!"]}
    reads: Readers = {"counts": lambda inks: ["even keel"[: len(ink)] for ink in inks]}
    named = cast(dict[str, Hand], {"ada": 1, "ben": 4})
    found = hands.measure(cast(Pen, pen), named, texts, 0.5, reads)
    assert pen.asked[0] == pen.asked[1]
    assert {bias for _, bias, _ in pen.asked} == {0.5}
    assert found["ada"]["plain"]["counts"]["edits"] == len("even keel") - 2
    assert found["ben"]["plain"]["counts"]["edits"] == 1


def _found(rates: dict[str, float]) -> hands.Found:
    judged = {
        name: {"plain": {"tesseract": figures([Errors(round(3000 * rate), 3000)])}}
        for name, rate in rates.items()
    }
    return {"1.0": cast(dict[str, dict[str, dict[str, Any]]], judged)}


def test_a_hand_twice_as_bad_as_the_median_is_told_and_one_made_up_is_none() -> None:
    rates = {"ada": 0.2, "ben": 0.1, "cleo": 0.2, hands.MADE_UP: 0.9}
    assert hands.worst_hand(_found(rates)).value == pytest.approx(1.0)
    assert hands.worst_hand(_found(rates)).met
    assert not hands.worst_hand(_found(rates | {"ben": 0.41})).met
    # Of 100 errors in 3,000 characters 200 are twice as many, as the rates that are told are not.
    assert hands.worst_hand(_found({"ada": 1 / 30, "ben": 1 / 30, "cleo": 2 / 30})).value == 2


def test_where_most_hands_are_read_right_the_worst_is_over_a_single_error() -> None:
    rates = {"ada": 0.0, "ben": 0.0, "cleo": 0.001}
    assert hands.worst_hand(_found(rates)).value == pytest.approx(3.0)
    assert hands.worst_hand(_found(rates | {"cleo": 0.0})).value == 0


@pytest.mark.parametrize("command", ["hands", "accents"])
def test_a_pen_without_stored_hands_has_none_to_write_in(
    scrawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    module = {"hands": hands, "accents": accents}[command]
    monkeypatch.setattr(module, "tesseract_version", lambda *_: "5")
    if command == "hands":
        monkeypatch.setattr(module, "readers_of", lambda _: {})
    edit_manifest(scrawl, lambda manifest: manifest.update({"styles": []}))
    files = [tmp_path / "new" / "made" / name for name in ("out.json", "sheet.png")]
    told = ["--out", str(files[0]), "--sheet", str(files[1])]
    assert main([command, str(scrawl), *told]) == 1
    assert f"error: {scrawl} has no stored hands to write in" in capsys.readouterr().err
    assert (tmp_path / "new" / "made").is_dir()  # where there was nothing to write to


def test_an_artifact_that_is_damaged_is_told_in_a_line(
    scrawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(accents, "tesseract_version", lambda *_: "5")
    (scrawl / STYLES).write_bytes((scrawl / STYLES).read_bytes()[:-1])
    assert main(["accents", str(scrawl), "--out", str(tmp_path / "o")]) == 1
    assert "cut short or altered" in capsys.readouterr().err


def test_plain_lines_and_invented_ones_fit_a_line() -> None:
    texts = hands.texts_of(40)
    assert [len(lines) for lines in texts.values()] == [40, 40]
    assert max(len(text) for lines in texts.values() for text in lines) <= LONGEST_LINE
    assert len(set(texts["invented"])) == 40


def test_the_sheet_has_every_stored_hand(tmp_path: Path) -> None:
    pen, image = TellingPen(), tmp_path / "hands.png"
    named = cast(dict[str, Hand], {"ada": 1, "ben": 4, "cleo": 2})
    hands_sheet.plot_hands(cast(Pen, pen), named, image)
    assert len(pen.asked[0][0]) == 3
    with Image.open(image) as sheet:
        assert sheet.size == (SHOWN_PX, 140)


def test_each_hand_of_the_sheet_is_called_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(hands_sheet, "save", lambda figure, _: drawn.append(figure))
    strokes = {"cleo": 2, "ada": 1, "ben": 4}
    hands_sheet.plot_hands(cast(Pen, TellingPen()), cast(dict[str, Hand], strokes), Path("none"))
    told = {axes.get_title("left"): len(axes.lines) for axes in drawn[0].axes}
    assert told == strokes | {"": 0}
    assert all(axes.get_position().width > 0.45 for axes in drawn[0].axes)  # of two in a row
    for axes in drawn[0].axes[: len(strokes)]:
        box, across, up = axes.get_window_extent(), np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())
        assert box.width / across == pytest.approx(box.height / up)  # neither wide nor tall
    pyplot.close(drawn[0])


def test_marks_of_the_sheet_of_accents_are_in_another_colour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(accents_sheet, "save", lambda figure, _: drawn.append(figure))
    points = np.array([[0, 0, 0], [9, 9, 1]], float)
    line = accents.Line("é", np.tile(points, (3, 1)), points)
    accents_sheet.plot_accents({"fra": [line] * 2}, Path("none"))
    for axes in drawn[0].axes:
        colors = [str(stroke.get_color()) for stroke in axes.lines]
        assert colors == [accents_sheet._INK] * 3 + [accents_sheet._MARKS]
        assert list(axes.lines[0].get_ydata()) == [0, -9]  # as on a page, where y is down
    pyplot.close(drawn[0])


def test_other_hands_are_shown_in_each_language(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(accents_sheet, "save", lambda figure, _: drawn.append(figure))
    by_hand = [np.array([[0, 0, 0], [hand, 0, 1]], float) for hand in range(1, 5)]
    lines = [accents.Line("é", points, points) for points in by_hand]
    accents_sheet.plot_accents({"fra": lines, "ita": lines}, Path("none"))
    hands = [float(axes.lines[0].get_xdata()[-1]) for axes in drawn[0].axes]  # type: ignore[index]
    pyplot.close(drawn[0])
    assert sorted(hands) == [1, 2, 3, 4]


def test_every_language_of_the_sheet_of_accents_has_a_name() -> None:
    assert accents_sheet._LANGUAGES.keys() == accents.SENTENCES.keys()


def test_a_line_is_shown_as_it_was_written_with_y_up() -> None:
    (stroke,) = as_shown(_STROKE)
    assert stroke[1] - stroke[0] == pytest.approx(np.array([1, 2]) * PAGE.px_per_unit)
    assert as_shown(_STROKE[:0]) == []


def test_each_reader_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "reader_of", lambda _: None)
    monkeypatch.setattr(shown, "read_strokes", lambda *_: " by the \nreader")
    monkeypatch.setattr(shown, "tesseract_all", lambda pngs: ["by  Tesseract"] * len(pngs))
    readers = shown.readers_of(Path("any"))
    assert readers[shown.READER]([_STROKE]) == ["by the reader"]
    assert readers[shown.TESSERACT]([_STROKE] * 2) == ["by Tesseract"] * 2


def test_a_line_is_read_as_a_line_by_itself_or_with_others_and_in_its_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[tuple[str, ...]]()

    def run(*arguments: str, stdin: bytes, lines: int = 1) -> bytes:
        asked.append(arguments)
        return b"\f".join([b"read"] * lines)

    monkeypatch.setattr(reading, "_run", run)
    assert reading.tesseract(b"") == "read"
    assert reading.tesseract_all([b"", b""]) == ["read"] * 2
    assert reading.tesseract_all([b""], "dan") == ["read"]
    line = ("stdin", "stdout", "--psm", "7", "-l")
    assert asked == [(*line, "eng"), (*line, "eng"), (*line, "dan")]


def test_a_language_that_tesseract_has_not_learnt_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"--version": b"tesseract 5.3.0\n leptonica", "--list-langs": b"2:\neng\ndan\n"}
    monkeypatch.setattr(reading, "_run", lambda asked: answers[asked])
    assert reading.tesseract_version() == reading.tesseract_version(("dan", "eng")) == "5.3.0"
    with pytest.raises(reading.NoReader, match=r"\(Debian: tesseract-ocr-ita tesseract-ocr-swe\)"):
        reading.tesseract_version(("dan", "ita", "swe"))


def test_the_picture_of_a_line_has_as_much_room_at_its_right_as_at_its_left() -> None:
    with Image.open(BytesIO(reading.picture(np.tile(_STROKE, (9, 1))))) as drawn:
        inked = np.flatnonzero((np.array(drawn.convert("L")) < 128).any(axis=0))
        left, right = inked[0], drawn.width - 1 - inked[-1]
    assert min(left, right) > 10
    assert abs(left - right) < 3


def test_a_pen_is_known_by_its_weights_and_its_hands() -> None:
    pen = Path(__file__).parents[2] / "artifacts" / "handwriting"
    files = {name: sha256(pen / name) for name in (WEIGHTS, STYLES)}
    assert shown.named(pen) == {"name": "handwriting"} | files


@pytest.mark.parametrize("option", ["--out", "--sheet"])
@pytest.mark.parametrize("command", ["legibility", "pages", "glyphs", "hands", "accents"])
def test_a_folder_is_no_file_to_write_to(
    command: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """It would be told after the work, and what came of that be lost."""
    module, _ = lab_commands._READINGS[command]
    monkeypatch.setattr(module, "run", lambda _: pytest.fail("the work has begun"))
    assert main([command, option, str(tmp_path)]) == 1
    assert f"{tmp_path} is a folder; name a file" in capsys.readouterr().err


def test_a_sheet_is_of_a_kind_that_can_be_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, _ = lab_commands._READINGS["legibility"]
    monkeypatch.setattr(module, "run", lambda _: pytest.fail("the work has begun"))
    assert main(["legibility", "--sheet", str(tmp_path / "sheet.txt")]) == 1
    assert "sheet.txt ends with .txt; it may with" in capsys.readouterr().err


@pytest.mark.parametrize("command", sorted({*lab_commands._READINGS} - {"writers"}))
def test_results_that_cannot_be_written_are_told_before_the_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Where they go if nothing else is told; `writers` prints alone."""
    module, _ = lab_commands._READINGS[command]
    monkeypatch.setattr(module, "run", lambda _: pytest.fail("the work has begun"))
    monkeypatch.chdir(tmp_path)
    Path("docs").touch()
    assert main([command, *(["docs/own.npz"] if command == "own" else [])]) == 1
    assert "docs" in capsys.readouterr().err


@pytest.mark.parametrize(
    "said", [["glyphs"], ["accents"], ["hands"], ["writers"], ["own", "corpus.npz"]]
)
def test_the_pen_that_is_shipped_writes_if_none_is_named(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    module, _ = lab_commands._READINGS[said[0]]
    monkeypatch.setattr(module, "run", lambda options: asked.append(options.artifact) or 0)
    assert main(said) == 0
    assert asked == [Path("artifacts/handwriting")]


@pytest.mark.parametrize(
    "said", [["glyphs", "--contexts"], ["hands", "--lines"], ["writers", "--best"]]
)
@pytest.mark.parametrize("number", ["0", "-1"])
def test_nothing_is_no_number_of_what_is_read(
    said: list[str], number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([*said, number])
    assert left.value.code == 2
    assert f"{number}; it must be 1 or more" in capsys.readouterr().err


def test_what_is_usual_is_what_the_help_says() -> None:
    said, usual = dict[str, str](), dict[str, str]()
    for command, (module, _) in lab_commands._READINGS.items():
        parser = argparse.ArgumentParser()
        module.add_options(parser)
        for action in parser._actions:
            if told := re.search(r"\((\d+)\)$", action.help or ""):
                name = f"{command} --{action.dest}"
                said[name], usual[name] = told[1], str(action.default)
    assert said == usual
    assert {"hands --lines", "writers --best", "glyphs --contexts", "own --count"} <= said.keys()


@pytest.mark.parametrize("command", lab_commands._READINGS)
def test_a_file_or_folder_that_a_command_is_told_is_a_path(command: str) -> None:
    """And so is where it reads and writes if nothing is told."""
    parser = lab_commands._parser()
    placed = {"own": ["out", "artifact"], "legibility": [], "pages": []}.get(command, ["artifact"])
    usual = vars(parser.parse_args([command, *(["o"] if command == "own" else [])]))
    files = {"artifact", "out", "pens", "reader", "sheet", "twin"} & usual.keys()
    options = [f"--{name}={name}" for name in files.difference(placed)]
    told = vars(parser.parse_args([command, *(n for n in placed if n in files), *options]))
    assert {name: told[name] for name in files} == {name: Path(name) for name in files}
    assert all(isinstance(usual[name], Path) for name in files - {"pens"} - {*placed[:1]})
