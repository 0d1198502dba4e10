"""A manifest is read as it was written, by the class of its kind."""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from contract.alphabets import ALPHABET
from contract.ink import InkManifest, StyleEntry
from contract.manifest import (
    EXACT,
    GOLDEN,
    WEIGHTS,
    Finding,
    Graphs,
    Manifest,
    Port,
    Ports,
    Runners,
    Variant,
)
from contract.manifests import read_manifest
from contract.reader import ReaderManifest
from contract.text import TextManifest

_GRAPHS = Graphs(plain="model.onnx", filtered="model-filtered.onnx")
_FACTS: dict[str, Any] = {
    "name": "small",
    "hyperparameters": {"units": 3},
    "graphs": Runners(scan=_GRAPHS, step=Graphs(plain="step.onnx")),
    "ports": Ports(
        state=(Port(name="token", dtype="int64", shape=(), initial=10.0),),
        step=(),
        row=(Port(name="log_min_p", dtype="float32", shape=(), initial=-math.inf),),
        output=(),
    ),
    "filters": ("log_min_p",),
    "layer_normalizations": 1,
    "parameters": 9,
    "provenance": {"data": {"name": "none"}},
    "files": {"model.onnx": "00"},
}
_PARITY = (
    Finding(name="bits", value=0.0, bound=0.0, detail="equal"),
    Finding(name="numbers", value=math.nan, bound=1.0, detail="no number"),
    Finding(name="growth", value=math.inf, bound=1.0, detail="too large"),
)


@pytest.mark.parametrize(
    "written",
    [
        TextManifest(**_FACTS),
        TextManifest(**_FACTS, parity=_PARITY, variant=Variant(folded=True)),
        InkManifest(**_FACTS),
        InkManifest(
            **_FACTS,
            styles=(StyleEntry(id="a", description="b", context="c", height=-0.5),),
        ),
    ],
    ids=["text", "text with a report", "ink", "ink with a hand"],
)
def test_what_is_written_is_read(tmp_path: Path, written: Manifest) -> None:
    files = dict.fromkeys((WEIGHTS, GOLDEN, *written.graphs.files()), "00")
    written = written.model_copy(update={"files": files})
    written.write(tmp_path)
    read = read_manifest(tmp_path)
    assert type(read) is type(written)
    assert read.model_dump_json() == written.model_dump_json()  # in which a NaN equals a NaN
    assert (tmp_path / "manifest.json").read_text().split("\n")[-2:] == ["}", ""]
    assert read.doubt == written.doubt


def test_a_manifest_always_says_its_variant_and_its_format(tmp_path: Path) -> None:
    TextManifest(**_FACTS).write(tmp_path)
    content = json.loads((tmp_path / "manifest.json").read_text())
    assert content["format_version"] == 2
    assert content["variant"] == {"folded": False, "quantized": False}
    assert "parity" not in content


def test_whoever_writes_a_manifest_anyone_may_read_it(tmp_path: Path) -> None:
    """As the files beside it: a report that is recorded does not take it from the service."""
    mask = os.umask(0o077)
    try:
        for _ in range(2):
            TextManifest(**_FACTS).write(tmp_path)
    finally:
        os.umask(mask)
    assert (tmp_path / "manifest.json").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_a_manifest_that_is_larger_than_any_is_not_read(tmp_path: Path) -> None:
    files = dict.fromkeys((WEIGHTS, GOLDEN, *_FACTS["graphs"].files()), "00")
    TextManifest(**_FACTS | {"files": files}).write(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().ljust(1 << 20))
    assert read_manifest(tmp_path).name == "small"
    path.write_text(path.read_text() + " ")
    with pytest.raises(ValueError, match=r"manifest\.json: it has more than 1048576 bytes"):
        read_manifest(tmp_path)


def test_each_kind_has_its_alphabet() -> None:
    assert TextManifest(**_FACTS).alphabet.model_dump() == {"kind": "bytes"}
    alphabet = InkManifest(**_FACTS).alphabet
    assert (alphabet.kind, alphabet.characters, alphabet.end) == ("characters", ALPHABET, 0)
    assert alphabet.longest_text == 63


def test_a_kind_nobody_knows_is_named_with_those_there_are(tmp_path: Path) -> None:
    TextManifest(**_FACTS).write(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"language"', '"music"'))
    with pytest.raises(ValueError, match="kind is 'music'; it must be one of: language, handwr"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("manifest", [TextManifest, InkManifest])
def test_a_key_of_another_kind_is_refused(manifest: type[Manifest]) -> None:
    own = {"ink", "styles"} & manifest.model_fields.keys()
    for key in {"ink", "styles", "surprise"} - own:
        with pytest.raises(ValidationError, match=key):
            manifest(**_FACTS, **{key: []})


@pytest.mark.parametrize(
    ("value", "bound", "holds"),
    [
        (0.0, 0.0, True),
        (1.0, 1.0, True),
        (1.1, 1.0, False),
        (math.nan, 1.0, False),
        (0.0, math.nan, False),
        (math.inf, 1.0, False),
        (0.0, math.inf, False),  # what bounds nothing
        (-math.inf, math.inf, False),
        (-1.0, 0.0, True),
    ],
)
def test_a_finding_holds_at_most_at_its_bound(value: float, bound: float, holds: bool) -> None:
    finding = Finding(name="it", value=value, bound=bound, detail="there")
    assert finding.holds is holds
    assert finding.describe()["holds"] is holds
    mark = "ok  " if holds else "FAIL"
    assert finding.line() == f"{mark} it: {value:.3g} (bound {bound:g}), there"


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_finding_that_is_no_number_has_a_word_in_json(number: float) -> None:
    described = Finding(name="it", value=number, bound=number, detail="").describe()
    told = json.loads(json.dumps(described, allow_nan=False))
    assert (told["value"], told["bound"], told["holds"]) == (None, None, False)


@pytest.mark.parametrize("name", ["units_per_line", "units_per_character"])
@pytest.mark.parametrize("unit", [0, -1, "Infinity", "NaN"])
def test_units_of_handwriting_can_be_divided_by(name: str, unit: float | str) -> None:
    with pytest.raises(ValidationError, match=name):
        InkManifest(**_FACTS, ink={name: unit})


@pytest.mark.parametrize("unit", [0, -1, "Infinity", "NaN"])
def test_a_reader_can_divide_by_its_units(unit: float | str) -> None:
    with pytest.raises(ValidationError, match="units_per_line"):
        ReaderManifest(**_FACTS, pieces={"units_per_line": unit})
    assert ReaderManifest(**_FACTS, pieces={"rests": 256}).pieces.rests == 256
    for rests in (-1, 257):
        with pytest.raises(ValidationError, match="rests"):
            ReaderManifest(**_FACTS, pieces={"rests": rests})


@pytest.mark.parametrize("unit", ["units_of_size", "piece_units"])
def test_a_reader_of_other_pieces_is_refused(unit: str) -> None:
    with pytest.raises(ValidationError, match="cut in other units"):
        ReaderManifest(**_FACTS, pieces={unit: 2.0})


@pytest.mark.parametrize("unit", ["units_of_size", "points_per_character"])
def test_a_pen_of_strokes_that_are_prepared_otherwise_is_refused(unit: str) -> None:
    with pytest.raises(ValidationError, match="prepared in other units"):
        InkManifest(**_FACTS, ink={unit: 2.0})


@pytest.mark.parametrize(
    ("key", "number"),
    [
        *[("height", height) for height in (math.nan, math.inf, 1e300, -1e300)],
        *[("advance", advance) for advance in (0, -1.0)],
    ],
)
def test_a_hand_is_of_numbers_that_ink_can_be_placed_with(key: str, number: float) -> None:
    hand = {"id": "a", "description": "b", "context": "c", "height": -0.5, "advance": 4.0}
    assert StyleEntry(**hand)
    with pytest.raises(ValidationError, match=key):
        StyleEntry(**hand | {key: number})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *[("id", text) for text in ("a/b", "a\nb", "", "x" * 101)],
        *[("description", text) for text in ("a\nb", "a\x1b[2Jb", "a\u202eb", "x" * 201)],
        *[("context", text) for text in ("€", "ab", "", "\n")],
    ],
)
def test_a_hand_has_a_name_for_a_path_and_words_of_a_line(key: str, text: str) -> None:
    hand = {"id": "a", "description": "b", "context": "c", "height": -0.5}
    with pytest.raises(ValidationError, match=key):
        StyleEntry(**hand | {key: text})


@pytest.mark.parametrize(
    "alphabet",
    [
        *[{"characters": characters} for characters in (ALPHABET[1:], f"{ALPHABET}€")],
        *[{"longest_text": longest} for longest in (-5, 62, 10**9)],
        {"end": 96},
    ],
)
def test_a_pen_has_the_symbols_of_its_graph(alphabet: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="not the symbols of a pen"):
        InkManifest(**_FACTS, alphabet=alphabet)


@pytest.mark.parametrize("alphabet", [{"characters": ALPHABET[::-1]}, {"blank": 1}])
def test_a_reader_has_the_symbols_that_are_read_by(alphabet: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="not the symbols of a reader"):
        ReaderManifest(**_FACTS, alphabet=alphabet)


def test_a_file_is_added_with_its_hash(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"some bytes")
    before = TextManifest(**_FACTS)
    after = before.with_file("a.bin", tmp_path / "a.bin", name="other")
    assert after.files == {
        "a.bin": hashlib.sha256(b"some bytes").hexdigest(),
        "model.onnx": "00",
    }
    assert list(after.files) == sorted(after.files)
    assert (after.name, before.name, before.files) == ("other", "small", {"model.onnx": "00"})


def test_a_file_that_is_replaced_has_its_new_hash(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"another")
    after = TextManifest(**_FACTS).with_file("model.onnx", tmp_path / "model.onnx")
    assert after.files == {"model.onnx": hashlib.sha256(b"another").hexdigest()}


def test_graphs_are_listed_by_runner_and_options() -> None:
    graphs = TextManifest(**_FACTS).graphs
    assert graphs.files() == ["model.onnx", "model-filtered.onnx", "step.onnx"]
    assert graphs.step.files() == {"plain": "step.onnx"}
    with_cuda = graphs.model_copy(update={"cuda": Graphs(plain="step-cuda.onnx")})
    assert with_cuda.each() == [*graphs.each(), ("cuda", "plain", "step-cuda.onnx")]


@pytest.mark.parametrize("folded", [False, True])
def test_a_variant_is_exact_if_nothing_was_changed(folded: bool) -> None:
    variant = Variant(folded=folded)
    assert variant.exact == (variant == EXACT) == (not folded)
    with pytest.raises(ValidationError, match="quantized"):
        Variant(folded=folded, quantized=True)


def test_the_precision_is_that_of_the_hyperparameters_or_float32_as_it_always_was() -> None:
    assert TextManifest(**_FACTS).precision == "float32"
    small = TextManifest(**_FACTS | {"hyperparameters": {"precision": "int8"}})
    assert small.precision == "int8"


def test_a_digest_is_of_the_files_and_of_nothing_else() -> None:
    one = TextManifest(**_FACTS)
    assert one.digest == one.model_copy(update={"name": "other"}).digest
    changed = one.files | {"model.onnx": "01"}
    assert one.digest != one.model_copy(update={"files": changed}).digest


def test_a_digest_is_the_same_in_whatever_order_the_files_are_told() -> None:
    files = {"a.onnx": "00", "b.onnx": "01"}
    one, other = (
        TextManifest(**_FACTS | {"files": dict(told)}) for told in (files, [*files.items()][::-1])
    )
    assert one.digest == other.digest


def test_a_digest_tells_files_that_were_exchanged() -> None:
    one = TextManifest(**_FACTS | {"files": {"a.onnx": "00", "b.onnx": "01"}})
    other = TextManifest(**_FACTS | {"files": {"a.onnx": "01", "b.onnx": "00"}})
    assert one.digest != other.digest


@pytest.mark.parametrize("name", ["..", ".hidden", "-option", "a/b", "", "x" * 101, "a\n"])
def test_a_name_is_that_of_a_plain_file(name: str) -> None:
    for changes in ({"name": name}, {"files": {name: "00"}}):
        with pytest.raises(ValidationError, match="pattern"):
            TextManifest(**_FACTS | changes)
    assert TextManifest(**_FACTS | {"name": "x" * 100})


def test_a_port_is_no_larger_than_a_model_needs() -> None:
    assert Port(name="h", dtype="float32", shape=(1 << 10, 1 << 10), initial=0.0)
    with pytest.raises(ValidationError, match="more than 1048576 numbers"):
        Port(name="h", dtype="float32", shape=(1 << 10, 1 << 10, 2), initial=0.0)


def test_neither_are_all_ports_together() -> None:
    """A service has as many of each as it has slots."""

    def ports(size: int) -> Ports:
        one, other = (
            Port(name=name, dtype="float32", shape=(size,), initial=0.0) for name in ("h", "c")
        )
        return Ports(state=(one,), step=(), row=(other,), output=())

    assert ports(1 << 19)
    with pytest.raises(ValidationError, match="ports have 1048578 numbers a row, more than"):
        ports((1 << 19) + 1)


@pytest.mark.parametrize(
    ("dtype", "initial", "fits"),
    [
        ("float32", -math.inf, True),
        ("float32", 3.4e38, True),
        ("float32", -3.5e38, False),
        ("float32", math.nan, False),
        ("int64", 2.0**53 - 1, True),
        ("int64", -(2.0**53), False),
        ("int64", 0.5, False),
        ("int64", math.inf, False),
        ("int64", math.nan, False),
        ("bool", 1.0, True),
    ],
)
def test_a_state_begins_with_a_number_of_its_type(dtype: str, initial: float, fits: bool) -> None:
    port = {"name": "h", "dtype": dtype, "shape": (2,), "initial": initial}
    if fits:
        assert Port(**port).initial == initial
        return
    with pytest.raises(ValidationError, match=f"which is no {dtype}"):
        Port(**port)


@pytest.mark.parametrize("shape", [(0,), (1 << 21,), (1, 1, 1, 1)])
def test_a_port_has_three_sides_at_most_and_none_of_nothing(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="shape"):
        Port(name="h", dtype="float32", shape=shape, initial=0.0)


@pytest.mark.parametrize("other", ["h", "h_after"])
def test_no_two_ports_have_one_name(other: str) -> None:
    state, output = (
        Port(name=name, dtype="float32", shape=(), initial=0.0) for name in ("h", other)
    )
    with pytest.raises(ValidationError, match="two ports have one name"):
        Ports(state=(state,), step=(), row=(), output=(output,))


def test_defaults_do_not_let_a_manifest_of_another_kind_pass(tmp_path: Path) -> None:
    TextManifest(**_FACTS).write(tmp_path)
    path = tmp_path / "manifest.json"
    content = json.loads(path.read_text()) | {"kind": "handwriting"}
    del content["alphabet"]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="alphabet, ink, styles: missing from a manifest of kind"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("version", [1, 3])
def test_a_manifest_of_another_format_says_which_and_what_to_do(
    tmp_path: Path, version: int
) -> None:
    """Before anything else: all the rest of it may be otherwise there, its kinds too."""
    content = {"format_version": version, "kind": "zither"}
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"is {version}; it must be 2: convert its run again"):
        read_manifest(tmp_path)


def test_a_step_for_cuda_runs_on_cuda_alone_and_any_where_there_is_none() -> None:
    scan, step, cuda = (Graphs(plain=f"{name}.onnx") for name in ("scan", "step", "cuda"))
    both, one = Runners(scan=scan, step=step, cuda=cuda), Runners(scan=scan, step=step)
    assert [both.step_on(provider) for provider in ("cpu", "cuda")] == [step, cuda]
    assert [one.step_on(provider) for provider in ("cpu", "cuda")] == [step, step]


@pytest.mark.parametrize("content", ["{}", "no JSON", '{"kind": 3}'])
def test_a_broken_manifest_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    first = "format_version" if content[0] == "{" else "the file"
    with pytest.raises(ValueError, match=rf"manifest\.json: {first}: ") as refused:
        read_manifest(tmp_path)
    assert "\n" not in str(refused.value)
