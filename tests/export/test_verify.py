"""The parity report: it holds for what was converted, and breaks when something else is served."""

import shutil
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from matplotlib.figure import Figure

from contract.manifest import Finding
from export.__main__ import main
from export.artifact import load_model, read_artifact
from export.golden import Sample
from export.parity import bits
from export.parity.replay import replay
from export.parity.report import COST, Evidence, Extent, Report, Served
from export.parity.served import ServedGraph, follow
from export.text.golden import sample, training_logits
from export.text.parity import compare, make_work, validation_text
from export.verify import verify
from models.language import LanguageModel
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from tests.export.changed import with_served_weight_changed
from tests.export.graphs import shipped_lines
from tests.service.altered import rehash
from tests.training.tiny import TEXT
from training.text.data import PYTHON_REFERENCE, read_corpus

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "artifacts" / "shakespeare"
SMALL = Extent(sampled_steps=480, structure_steps=60, bit_steps=4, timed=False)
_MATRIX = "stack.cells.0.weight_h"


@pytest.fixture(scope="module")
def report(artifact: Path, corpus: Path) -> Report:
    return verify(artifact, corpus.parent, SMALL)


def named(report: Report) -> dict[str, Finding]:
    return {finding.name: finding for finding in report.findings}


def test_what_was_converted_keeps_every_bound(report: Report) -> None:
    assert list(named(report)) == shipped_lines("language")
    assert report.holds, report.findings
    assert report.notes == []


def test_the_command_prints_the_report_and_records_it_when_asked(
    folder: Path, report: Report, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("export.verify.verify", lambda *_: report)
    before = (folder / "manifest.json").read_bytes()
    assert main(["verify", str(folder)]) == 0
    assert (folder / "manifest.json").read_bytes() == before
    assert main(["verify", str(folder), "--record"]) == 0
    printed = capsys.readouterr().out
    assert printed == "".join(f"{f.line()}\n" for f in report.findings) * 2
    assert "FAIL" not in printed
    assert read_artifact(folder).parity == tuple(report.findings)
    assert read_artifact(folder).doubt is None


def test_the_plot_of_a_report_says_whose_error_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn: list[Figure] = []
    curves = {"exported": np.array([1e-7, 2e-7])}
    monkeypatch.setattr("export.verify.verify", lambda *_: Report([], curves))
    monkeypatch.setattr("training.curves.save", lambda figure, image: drawn.append(figure))
    main(["verify", str(folder), "--plot", str(tmp_path / "error.png")])
    (axes,) = drawn[0].axes
    assert axes.get_title("left") == f"{folder.name}: distance to float64"
    assert list(axes.lines[0].get_ydata()) == [1e-7, 2e-7]


def test_time_that_was_missed_is_told_and_is_no_doubt_of_the_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    green = Finding(name="bits", value=0.0, bound=0.0, detail="made up")
    slow = Finding(name=COST, value=1.5, bound=1.05, detail="made up")
    monkeypatch.setattr("export.verify.verify", lambda *_: Report([green, slow], {}))
    assert main(["verify", str(folder), "--record"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[1:] == [slow.line(), "     not recorded: bits, cost, which is of time alone"]
    assert (read_artifact(folder).parity, read_artifact(folder).doubt) == ((green,), None)
    assert main(["verify", str(folder)]) == 1
    assert "not recorded" not in capsys.readouterr().out  # nothing was to be
    quick = slow.model_copy(update={"value": 1.0})
    monkeypatch.setattr("export.verify.verify", lambda *_: Report([green, quick], {}))
    assert main(["verify", str(folder), "--record"]) == 0
    assert read_artifact(folder).parity == (green, quick)


def test_a_report_is_recorded_of_the_artifact_that_was_compared_and_of_no_other(
    folder: Path, report: Report, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def another_meanwhile(*_: object) -> Report:
        (folder / "step.onnx").write_bytes((folder / "step-filtered.onnx").read_bytes())
        rehash(folder)
        return report

    monkeypatch.setattr("export.verify.verify", another_meanwhile)
    assert main(["verify", str(folder), "--record"]) == 1
    assert "has become another" in capsys.readouterr().err
    assert read_artifact(folder).parity is None


def test_of_many_processes_the_first_builds(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.__main__.train_by", lambda *_: None)
    monkeypatch.setenv("RANK", "1")
    words = ["--out", str(tmp_path / "run"), "--artifact", str(tmp_path / "made")]
    assert main(["build", "quickstart", *words]) == 0
    monkeypatch.setenv("RANK", "0")
    assert main(["build", "quickstart", *words]) == 1  # no run was made


_RED = Finding(name="structure", value=2.0, bound=1.0, detail="made up")
_OF_A_PEN = Finding(name="log-density", value=0.0, bound=1.0, detail="made up")
_HEADLINES = "log-probability", "sampling", "bits", "log-density"


@pytest.mark.parametrize("red", [False, True])
def test_what_was_built_has_its_report_which_is_told_briefly(
    run: Path, artifact: Path, tmp_path: Path, report: Report, red: bool,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """And takes the place of what was built before unless it is red."""
    findings = [*report.findings[red:], _OF_A_PEN, *[_RED] * red]
    made = tmp_path / "made"

    def written(folder: Path, *_: object) -> None:  # the same graphs, without tracing them again
        shutil.copytree(artifact, folder, dirs_exist_ok=True)

    monkeypatch.setattr("export.__main__.train_by", lambda *_: None)
    monkeypatch.setattr("export.convert.write_artifact", written)
    monkeypatch.setattr("export.verify.verify", lambda *_: Report(findings, {}))
    words = ["--out", str(run), "--artifact", str(made)]
    assert main(["build", "quickstart", *words]) == int(red)
    assert read_artifact(made).parity == tuple(findings)
    printed = capsys.readouterr().out.splitlines()
    briefly = [f"ok   {name}" for name in _HEADLINES] + ["FAIL structure"] * red
    assert [line.split(":")[0] for line in printed[1 : 1 + len(briefly)]] == briefly
    assert printed[1 + len(briefly) :] == ["the parity report is red: structure"] * red
    read_artifact(made).model_copy(update={"parity": None}).write(made)
    assert main(["build", "quickstart", *words]) == int(red)
    assert read_artifact(made).parity == (None if red else tuple(findings))
    assert (f"{made} is left as it was" in capsys.readouterr().err) is red


@pytest.mark.parametrize("full", [False, True])
def test_a_full_report_is_of_all_that_is_promised_and_of_time(
    artifact: Path, report: Report, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    extents: list[Extent] = []

    def verified(_: Path, __: Path, extent: Extent) -> Report:
        extents.append(extent)
        return report

    monkeypatch.setattr("export.verify.verify", verified)
    assert main(["verify", str(artifact), *["--full"] * full]) == 0
    (extent,) = extents
    assert extent.timed is full
    assert extent.sampled_steps >= (1e5 if full else 3e3)
    assert (extent.sampled_steps >= 1e5) is full
    assert extent.structure_steps >= 1e3
    row_steps = bits.LARGEST_BATCH * (bits.LARGEST_BATCH + 1) // 2 * extent.bit_steps
    assert row_steps >= (1e6 if full else 5e4)
    assert (row_steps >= 1e6) is full


def _without_temperature(path: Path) -> None:
    """Have a graph take 1 for whatever temperature it is given."""
    model = onnx.load(path, load_external_data=False)
    (user,) = (n for n in model.graph.node if "inverse_temperature" in n.input)
    one = onnx.helper.make_node("Div", ["inverse_temperature"] * 2, ["one"])
    user.input[list(user.input).index("inverse_temperature")] = "one"
    model.graph.node.insert(0, one)
    path.write_bytes(model.SerializeToString())


def test_an_option_that_every_graph_forgets_breaks_the_report(folder: Path) -> None:
    manifest = read_artifact(folder)
    assert replay(folder, manifest, Served(folder, manifest)).holds
    for name in manifest.graphs.files():
        _without_temperature(folder / name)
    found = replay(folder, manifest, Served(folder, manifest))
    assert found.value == len(manifest.graphs.files()), found
    assert "model.onnx: " in found.detail


@pytest.mark.parametrize("name", ["model.safetensors", "golden.safetensors", "step.onnx"])
def test_a_file_that_was_changed_is_not_verified(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray((folder / name).read_bytes())
    content[-5] ^= 1
    (folder / name).write_bytes(content)
    assert main(["verify", str(folder), "--record"]) == 1
    assert f"{name} is not the file its manifest describes" in capsys.readouterr().err
    (folder / name).unlink()
    assert main(["verify", str(folder)]) == 1


@pytest.mark.parametrize(("missing", "told"), [("model", "chunks"), ("step", "single steps")])
def test_a_graph_in_the_place_of_another_is_told_of(
    folder: Path, missing: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (other,) = {"model", "step"} - {missing}
    shutil.copy(folder / f"{other}.onnx", folder / f"{missing}.onnx")
    rehash(folder)
    assert main(["verify", str(folder)]) == 1
    assert f"{missing}.onnx is no graph of {told}" in capsys.readouterr().err


@pytest.fixture
def _numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report without what takes longest: a graph traced anew, and the bits of every row."""
    green = Finding(name="structure", value=0.0, bound=0.0, detail="left out")
    monkeypatch.setattr("export.text.parity._structure", lambda *_: green)
    monkeypatch.setattr("export.text.parity._bits", lambda *_: [])
    monkeypatch.setattr("export.parity.report.QUICK", SMALL)


@pytest.mark.usefixtures("_numbers_alone")
def test_without_the_corpus_a_note_says_that_it_is_not_compared(
    artifact: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    # As long as the corpus, and not it.
    (tmp_path / "other.txt").write_text(TEXT[::-1])
    (tmp_path / "empty.txt").touch()  # which is no corpus at all
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    monkeypatch.setenv("EVENKEEL_DATA", str(tmp_path))
    assert main(["verify", str(artifact)]) == 0
    printed = capsys.readouterr().out
    assert "score, sampled text" in printed
    assert "score, validation text" not in printed
    missing = f"not compared: the validation text; {corpus.name} is not in"
    assert f"{missing} {tmp_path}\n" in printed
    manifest = read_artifact(artifact)
    evidence = Evidence(manifest, Served(artifact, manifest), SMALL, None)
    assert validation_text(evidence) == (None, [f"{missing} no data folder"])
    found, note = validation_text(replace(evidence, data_folder=corpus))
    assert found is not None
    assert note == []


def test_the_reference_every_python_carries_needs_no_folder(artifact: Path) -> None:
    corpus, manifest = read_corpus(PYTHON_REFERENCE), read_artifact(artifact)
    data = {"name": corpus.name, "sha256": corpus.sha256, "validation_fraction": 0.01}
    about = {"provenance": manifest.provenance | {"data": data}}
    served = Served(artifact, manifest)
    text, _ = validation_text(Evidence(manifest.model_copy(update=about), served, SMALL, None))
    assert text is not None
    assert bytes(text.symbols[:20, 0].tolist()) in corpus.content


def test_of_a_long_validation_text_the_first_bytes_are_compared(
    artifact: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = read_artifact(artifact)
    evidence = Evidence(manifest, Served(artifact, manifest), SMALL, corpus.parent)
    whole, note = validation_text(evidence)
    assert whole is not None
    assert note == []
    monkeypatch.setattr("export.text.parity._MOST_BYTES", 10 * evidence.rows + 1)
    part, note = validation_text(evidence)
    assert part is not None
    assert part.symbols.shape == (10, evidence.rows)
    text = whole.symbols.t().flatten()
    assert part.symbols.t().flatten().tolist() == text[: 10 * evidence.rows].tolist()
    assert note[0].startswith(f"compared: the first {10 * evidence.rows + 1:,} of ")
    monkeypatch.setattr("export.text.parity._MOST_BYTES", evidence.rows - 1)
    assert validation_text(evidence)[0] is None


def controlled(artifact: Path, *, prepacking: bool) -> Finding:
    manifest = read_artifact(artifact)
    served = Served(artifact, manifest)
    work = make_work(sample(load_model(artifact, manifest), 8, bits.LARGEST_BATCH, 1), 1)
    return bits.control(served.graph("scan", "filtered", prepacking=prepacking), work)


def test_the_control_of_more_units_is_of_the_graph_itself(artifact: Path) -> None:
    assert controlled(artifact, prepacking=False).holds
    blind = controlled(artifact, prepacking=True)
    assert not blind.holds
    assert "it has no power" in blind.detail


def test_a_row_that_depends_on_its_place_turns_the_bits_red(
    artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bits, "LARGEST_BATCH", 5)  # of batches on the graph that has all options
    manifest = read_artifact(artifact)
    served, model = Served(artifact, manifest), load_model(artifact, manifest)
    work = make_work(sample(model, 4, 65, 1), 1)
    alone = served.graph("scan", "filtered")
    unpacked = served.graph("scan", "filtered", prepacking=False)
    comparison = bits.compare_everything(alone, [unpacked], work, 1)
    assert not bits.bits(comparison).holds


def test_a_machine_of_many_cores_has_each_count_of_threads_and_few_sessions_at_once(
    artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = read_artifact(artifact)
    served, model = Served(artifact, manifest), load_model(artifact, manifest)
    counts, most, alive = [], 0, weakref.WeakSet[ServedGraph]()
    made = served.graph

    def graph(runner: str, options: str, **settings: Any) -> ServedGraph:
        nonlocal most
        one = made(runner, options, **settings)
        alive.add(one)
        counts.append(settings.get("threads"))
        most = max(most, len(alive))
        return one

    monkeypatch.setattr(bits, "LARGEST_BATCH", 5)  # which sessions there are is what is looked at
    monkeypatch.setattr(bits.os, "cpu_count", lambda: 12)
    monkeypatch.setattr(served, "graph", graph)
    bits.findings(served, make_work(sample(model, 2, 16, 1), 1), SMALL, 1)
    assert [n for n in counts if n] == list(range(1, 13))
    assert most <= 5


def attested(folder: Path) -> bool:
    checked = load_artifact(folder)
    runtime = Runtime("cpu", "scan", threads=1, slots=4)
    return attest(checked, ScanRunner(checked, runtime)).ok


@pytest.mark.usefixtures("_numbers_alone")
def test_one_changed_element_of_the_served_matrix_breaks_the_report_and_the_replay(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("EVENKEEL_DATA", str(tmp_path))
    changed = with_served_weight_changed(artifact, tmp_path / "tiny", _MATRIX, 1e-3)
    assert main(["verify", str(changed)]) == 1
    assert "FAIL log-probability" in capsys.readouterr().out
    assert attested(artifact)
    assert not attested(changed)


def test_one_changed_element_of_the_shipped_model_is_seen_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = dict[tuple[torch.dtype, bytes, int], torch.Tensor]()

    def once(model: LanguageModel, of: Sample) -> torch.Tensor:
        """Of the shipped model, which both are compared with."""
        symbols = of.symbols.numpy()
        key = (model.readout.weight.dtype, symbols.tobytes(), symbols.shape[1])
        if key not in trained:
            trained[key] = training_logits(model, of)
        return trained[key]

    monkeypatch.setattr("export.text.parity.training_logits", once)
    changed = with_served_weight_changed(SHIPPED, tmp_path / "shakespeare", _MATRIX, 1e-3)
    manifest = read_artifact(SHIPPED)
    model = load_model(SHIPPED, manifest)
    drawn = sample(model, 60, 16, seed=1)
    for folder, expected in ((SHIPPED, True), (changed, False)):
        path = folder / manifest.graphs.step.plain
        graph = ServedGraph(path, manifest.ports, scan=False, threads=1)
        outputs, draws = follow(graph, drawn)
        findings, _ = compare(model, drawn, outputs["logits"], draws, 60)
        held = {f.name: f.holds for f in findings}
        assert held["log-probability"] is held["rounding"] is expected, findings
        assert attested(folder) is expected


def test_nothing_served_passes_by_being_not_a_number() -> None:
    assert not Finding(name="x", value=float("nan"), bound=1.0, detail="").holds
