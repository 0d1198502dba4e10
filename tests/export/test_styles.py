"""Stored hands: which line of a writer is read, and how wide and high its hand is."""

import os
import shutil
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract.alphabets import END, encode
from contract.golden import Arrays
from contract.ink import STYLES, InkManifest
from contract.manifest import MANIFEST, WEIGHTS
from contract.noise import InkNoise
from export.__main__ import main
from export.artifact import read_artifact, require_files
from export.ink.styles import (
    _MEASURED,
    _TIMES,
    RECIPE,
    StyleChoice,
    add_styles,
    advance_of,
    fitting_lines,
    read_ink,
    read_styles,
)
from tests.artifacts import HANDS, invented_ink
from training.ink.corpus import PenCorpus
from training.recipe import read_recipe

_FAR, _PAST = 100.0, 4.0  # to the beginning of a line, and past its ink


class _Ruler:
    """A graph that moves by 1, each line longer by more than the one before, and then past its ink;
    it keeps the noise it is given."""

    def initial_state(self, batch: int) -> Arrays:
        return {"h": np.zeros(batch)}

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        self.noise = steps["uniform"], steps["normal"]
        drawn = np.ones_like(steps["forced"])
        drawn[0] = _FAR
        ended = np.zeros(drawn.shape[:2], bool)
        for line in range(_TIMES):
            drawn[9 + line**2, line, 0] = -1  # back, as to cross a t
            drawn[10 + line**2, line, 0] = _PAST
            ended[10 + line**2 :, line] = True
        return state, {"drawn": drawn, "ended": ended}


def test_a_hand_is_as_wide_as_its_lines_are_from_their_first_points_to_their_last() -> None:
    widths = [10 + line**2 - 3 for line in range(_TIMES)]
    advance = advance_of(_Ruler(), {"h": np.zeros(1)}, "a")
    assert advance == pytest.approx(np.mean(widths) / len(_MEASURED))


@pytest.mark.parametrize("points", [0, 1, 2])
def test_a_hand_that_writes_no_width_has_none(points: int) -> None:
    """As of a pen that has hardly learnt: its lines are over after no point, or one or two."""

    class Over(_Ruler):
        def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
            drawn = np.ones_like(steps["forced"])
            drawn[points, :, 0] = _PAST
            return state, {"drawn": drawn, "ended": np.ones(drawn.shape[:2], bool)}

    assert advance_of(Over(), {"h": np.zeros(1)}, "a") is None


def test_a_hand_is_measured_behind_its_own_last_character_as_neatly_as_is_usual() -> None:
    class Keeps(_Ruler):
        def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
            self.row = row
            return super().run(state, steps, row)

    ruler, text = Keeps(), encode(f"z {_MEASURED}")
    advance_of(ruler, {"h": np.zeros(1)}, "z")
    assert ruler.row["length"].tolist() == [len(text)] * _TIMES
    assert ruler.row["text"][:, : len(text) + 1].tolist() == [[*text, END]] * _TIMES
    assert ruler.row["bias"].tolist() == [1.0] * _TIMES


def test_the_lines_a_hand_is_measured_by_are_drawn_with_noise_of_their_own() -> None:
    ruler = _Ruler()
    advance_of(ruler, {"h": np.zeros(1)}, "a")
    uniforms, normals = ruler.noise
    for line in range(_TIMES):
        uniform, normal = InkNoise(0, line).take(0, len(uniforms))
        assert np.array_equal(uniforms[:, line], uniform)
        assert np.array_equal(normals[:, line], normal)


def test_a_stored_hand_stands_as_high_as_its_ink_ends(made_once: Callable[[str], Path]) -> None:
    manifest = read_artifact(made_once("scrawl"))
    assert isinstance(manifest, InkManifest)
    ends = [invented_ink(hand, seed).offsets.sum(axis=0)[1] for seed, hand in enumerate(HANDS)]
    assert [style.height for style in manifest.styles] == pytest.approx(ends)


def test_the_lines_of_a_writer_are_in_order_of_their_texts() -> None:
    ink = invented_ink("upright", 0)
    inks = [replace(ink, text=f"{first}{ink.text[1:]}") for first in "bca"]
    others = [replace(ink, writer=writer) for writer in ("hasty", "upright 2", "right")]
    lines = fitting_lines(PenCorpus("invented", [*inks, *others]), "upright")
    assert [line.text[0] for line in lines] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("as long as it may not be", True),  # 24 characters
        ("the line is still short", False),
        ("a line of as many characters as it may have!", True),  # 44
        ("a line of as many characters as it may have!?", False),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaa ", False),  # one word
        ("aaa aaaaaaaaaaaa AAAAAAAAAA", False),  # 15 of 27 are small letters
        ("aaa aaaaaaaaaaaa AAAAAAAA", True),  # 15 of 25, the very limit
        ("aaa aaaaaaaaaaaaaaa AAAAAAAAA", True),
    ],
)
def test_a_line_shows_a_hand_by_some_words_of_small_letters(text: str, fits: bool) -> None:
    other, ink = invented_ink("upright", 0), replace(invented_ink("upright", 1), text=text)
    assert (ink in fitting_lines(PenCorpus("invented", [other, ink]), "upright")) is fits


@pytest.mark.parametrize("text", ["", "aaaaaaaaaaaaaaaaaaaaaaaaaaa", "AAA AAAAAAAAAAAAAAAAAAAAAAA"])
def test_a_writer_without_such_a_line_is_told_what_a_line_has_to_be(text: str) -> None:
    inks = [replace(invented_ink("upright", 0), text=text)] * bool(text)
    told = "no line of 24 to 44 characters, several words and small letters for the most part"
    with pytest.raises(ValueError, match=f"'upright' has {told}"):
        fitting_lines(PenCorpus("invented", inks), "upright")


class _Reads:
    """A graph that has come to the last character of what it reads."""

    def initial_state(self, batch: int) -> Arrays:
        return {"kappa": np.zeros((batch, 2), np.float32)}

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        self.row, self.steps = row, steps
        return {"kappa": state["kappa"] + (row["length"] - np.float32(0.5))[:, None]}, {}


def test_a_hand_goes_on_from_the_last_character_it_has_read() -> None:
    graph, ink = _Reads(), invented_ink("upright", 0)
    assert read_ink(graph, ink)["kappa"].tolist() == [0.5, 0.5]  # which is the first of what comes
    assert graph.steps["force"].all()
    assert np.array_equal(graph.steps["forced"][:, 0], ink.offsets)
    assert graph.row["bias"].tolist() == [0.0]


def test_stored_hands_may_be_read_by_anyone_and_go_on_after_their_last_character(
    made_once: Callable[[str], Path],
) -> None:
    scrawl = made_once("scrawl")
    assert (scrawl / STYLES).stat().st_mode & 0o777 == 0o644
    manifest = read_artifact(scrawl)
    assert isinstance(manifest, InkManifest)
    assert {style.context for style in manifest.styles} == {"d"}  # of "hand"


def test_no_hand_is_read_by_a_pen_that_is_not_the_one_of_its_manifest(
    made_once: Callable[[str], Path], tmp_path: Path
) -> None:
    scrawl = Path(shutil.copytree(made_once("scrawl"), tmp_path / "scrawl"))
    with (scrawl / "step.onnx").open("ab") as file:
        file.write(b"\n")
    corpus = PenCorpus("invented", [invented_ink("upright", 0)])
    choice = StyleChoice(id="mine", description="invented", writer="upright")
    with pytest.raises(ValueError, match=r"step\.onnx is not the file its manifest describes"):
        add_styles(scrawl, corpus, [choice])


def test_what_can_have_no_hands_is_told_before_pen_data_is_read(
    made_once: Callable[[str], Path], artifact: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pen = shutil.copytree(made_once("scrawl"), tmp_path / "pen")
    (pen / WEIGHTS).write_bytes(b"")
    for place, told in (artifact, "only a pen has hands"), (pen, WEIGHTS):
        assert main(["styles", str(place), "--data", str(tmp_path / "none")]) == 1
        assert told in capsys.readouterr().err


def test_hands_that_were_cut_in_writing_are_written_anew(
    made_once: Callable[[str], Path], tmp_path: Path
) -> None:
    scrawl = Path(shutil.copytree(made_once("scrawl"), tmp_path / "scrawl"))
    with (scrawl / STYLES).open("ab") as file:
        file.write(b"\n")
    _store_one(scrawl)
    manifest = read_artifact(scrawl)
    require_files(scrawl, manifest.files)
    assert isinstance(manifest, InkManifest)
    assert [style.context for style in manifest.styles] == ["y"]  # of the line that was chosen
    for line in (-1, 2):
        with pytest.raises(ValueError, match=f"^upright wrote 2 fitting lines; none is {line}$"):
            _store_one(scrawl, line)


def test_how_wide_a_hand_is_goes_on_from_the_last_character_of_its_line(
    made_once: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = list[str]()

    def measured(graph: object, state: Arrays, context: str) -> float:
        contexts.append(context)
        return 1.5

    monkeypatch.setattr("export.ink.styles.advance_of", measured)
    scrawl = Path(shutil.copytree(made_once("scrawl"), tmp_path / "scrawl"))
    _store_one(scrawl, 0, "as long as it may not be ")
    manifest = read_artifact(scrawl)
    assert isinstance(manifest, InkManifest)
    (style,) = manifest.styles
    assert (contexts, style.context, style.advance) == ([" "], " ", 1.5)


def _store_one(scrawl: Path, line: int = 1, text: str = "as long as it may not be") -> None:
    """A hand after one of two lines."""
    texts = ("as long as it may not by", text)
    inks = [replace(invented_ink("upright", 1), text=text) for text in texts]
    choice = StyleChoice(id="mine", description="invented", writer="upright", line=line)
    add_styles(scrawl, PenCorpus("invented", inks), [choice])


def test_hands_and_their_manifest_are_on_the_disk_before_either_takes_its_place(
    made_once: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of power leaves no file without its content, of which an artifact is no more."""
    scrawl = Path(shutil.copytree(made_once("scrawl"), tmp_path / "scrawl"))
    synced = list[tuple[int, list[int]]]()

    def nodes() -> list[int]:
        return [(scrawl / name).stat().st_ino for name in (STYLES, MANIFEST)]

    monkeypatch.setattr(
        os, "fsync", lambda file: synced.append((os.stat(file.fileno()).st_ino, nodes()))
    )
    before = nodes()
    _store_one(scrawl)
    assert synced == [(node, before) for node in nodes()]


def test_a_disk_without_room_for_the_manifest_keeps_the_hands_of_before(
    made_once: Callable[[str], Path], tmp_path: Path,
    full_disk: Callable[[int], AbstractContextManager[None]],
) -> None:  # fmt: skip
    scrawl = Path(shutil.copytree(made_once("scrawl"), tmp_path / "scrawl"))
    with full_disk((scrawl / MANIFEST).stat().st_size // 2), pytest.raises(OSError, match=MANIFEST):
        _store_one(scrawl)
    require_files(scrawl, read_artifact(scrawl).files)
    assert not list(scrawl.glob(".*"))


@pytest.mark.parametrize("name", [STYLES, MANIFEST])
def test_who_interrupts_leaves_hands_that_are_those_of_the_manifest(
    made_once: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Ctrl-C as either file takes its place."""
    whole = Path.replace

    def replaced(temporary: Path, path: Path) -> Path:
        placed = whole(temporary, path)
        if path.name == name:
            signal.raise_signal(signal.SIGINT)
        return placed

    scrawl = Path(shutil.copytree(made_once("scrawl"), tmp_path / "scrawl"))
    monkeypatch.setattr(Path, "replace", replaced)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _store_one(scrawl)
    finally:
        signal.signal(signal.SIGINT, usual)
    require_files(scrawl, read_artifact(scrawl).files)
    assert not list(scrawl.glob(".*"))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "[[style]]\nid = 'a'\ndescription = 'd'\nwriter = 'w'\n" * 2,
            "more than one hand is called a",
        ),
        ("[[style]]\nid = 'a'\nother = 1\n", "has no table"),
        ("[[hand]]\nid = 'a'\n", "has no table"),
        ("style = []\n", "has no table"),
        ("style\n", "is no TOML"),
        (f"style = {'[' * 20_000}", "is no TOML"),
        *(
            (f"[[style]]\ndescription = 'd'\nwriter = 'w'\n{line}\n", "has no table")
            for line in (
                "id = ''",
                "id = 'a/../ b'",
                'id = "a\\n"',
                "id = 'a'\nline = '1'",
                "id = 'a'\nline = 0.0",
            )
        ),
    ],
    ids=[
        "twice",
        "unknown",
        "none",
        "empty",
        "words",
        "nested",
        "unnamed",
        "path",
        "break",
        "text",
        "fraction",
    ],
)
def test_a_recipe_of_hands_that_is_none_is_told_so(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "hands.toml").write_text(content)
    with pytest.raises(ValueError, match=told):
        read_styles(tmp_path / "hands.toml")


def test_hands_are_those_of_the_files_that_are_named(
    made_once: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, read = list[list[str]](), list[Path]()

    def add(_: object, __: object, choices: list[StyleChoice]) -> None:
        stored.append([choice.id for choice in choices])

    monkeypatch.setattr("export.ink.styles.add_styles", add)
    monkeypatch.setattr("training.ink.corpus.read_pens", lambda place, _: read.append(place))
    (tmp_path / "hands.toml").write_text("[[style]]\nid = 'a'\ndescription = 'd'\nwriter = 'w'\n")
    monkeypatch.setenv("EVENKEEL_DATA", str(tmp_path))
    shipped = tmp_path / read_recipe("handwriting").data.source
    shipped.mkdir()
    words = ["styles", str(made_once("scrawl"))]
    named = ["--data", str(tmp_path), "--hands", str(tmp_path / "hands.toml")]
    assert main([*words, *named]) == 0
    assert main(words) == 0
    assert stored == [["a"], [choice.id for choice in read_styles(RECIPE)]]
    assert read == [tmp_path, shipped]


@pytest.mark.parametrize("name", ["", "nowhere.toml"])
def test_hands_that_are_in_no_file_are_told_in_words(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"^--hands is .*, which is no file$"):
        read_styles(tmp_path / name)
