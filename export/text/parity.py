"""The parity report of a language model. Shapes: T steps, B rows, V symbols."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contract.manifest import Finding
from export.golden import Sample
from export.parity import bits, numbers, operators
from export.parity.report import SEED, Evidence, Report
from export.parity.served import follow, read
from export.text.golden import options, sample, training_logits
from export.text.numbers import log_probability, sampling, score
from export.variant import GraphWriter
from models.language import LanguageModel
from models.quantized import integer_matrices
from training.files import files_below
from training.text.data import PYTHON_REFERENCE, Corpus, read_corpus, streams

# Of validation text: training's forward holds some 20 KB a byte at 512 units.
_MOST_BYTES = 2**17


def report(writer: GraphWriter, evidence: Evidence) -> Report:
    """Every comparison."""
    model, served = _model(writer), evidence.served
    drawn = sample(model, evidence.sampled_steps, evidence.rows, SEED)
    outputs, draws = follow(served.step, drawn)
    # The error of a trained model does not grow with the steps: a training segment shows it.
    part = evidence.manifest.provenance["batch"]["steps"]
    findings, curves = compare(model, drawn, outputs["logits"], draws, part)
    text, note = validation_text(evidence)
    if text is not None:
        trained = training_logits(model, text).numpy()
        logits = read(served.scan, text)["logits"]
        findings.append(score("validation text", text.symbols.numpy(), trained, logits))
    findings = [_structure(writer, evidence), *findings, *_bits(model, evidence)]
    return Report(findings, curves, note)


def compare(
    model: LanguageModel, drawn: Sample, logits: Any, draws: Any, part: int
) -> tuple[list[Finding], dict[str, Any]]:
    """Rounding over the first `part` steps, log-probability, sampling and score: served logits
    `(T, B, V)` and draws `(T, B)` beside what training computes for the sample."""
    rounding, trained, curves = numbers.rounding(
        model, drawn.first(part), logits[:part], training_logits
    )
    whole = training_logits(model, drawn).numpy()
    return [
        rounding,
        log_probability(trained, logits[:part]),
        sampling(drawn, logits, draws),
        score("sampled text", drawn.symbols.numpy(), whole, logits),
    ], curves


def make_work(drawn: Sample, seed: int) -> bits.Work:
    """Mixed work for all rows of a sample: prompts beside draws, all kinds of options."""
    total, rows = drawn.symbols.shape
    random = np.random.default_rng(seed)
    prompt = random.integers(0, total, (rows,))
    filters = np.arange(rows) % 3 == 2  # every third row asks for symbols to be left out
    half = random.random((rows,)) < 0.5
    return bits.Work(
        drawn.read() | {"force": np.arange(total)[:, None] < prompt[None, :]},
        {
            "inverse_temperature": random.uniform(0.6, 2.0, (rows,)).astype(np.float32),
            "logit_bias": random.normal(0, 0.3, (rows, 256)).astype(np.float32),
            "log_min_p": np.where(filters & half, -3.0, -np.inf).astype(np.float32),
            "top_k": np.where(filters, random.integers(1, 40, (rows,)), 256),
            "top_p": np.where(filters, random.uniform(0.3, 1.0, (rows,)), 1.0).astype(np.float32),
        },
        filters,
    )


def validation_text(evidence: Evidence) -> tuple[Sample | None, list[str]]:
    """The validation part of the training corpus, if it is on this machine, as a sample to read:
    streams of training's rows. Found by its hash; without it a note says so."""
    data = evidence.manifest.provenance["data"]
    corpus = _find(data, evidence.data_folder) if "sha256" in data else None
    if corpus is None:
        where = evidence.data_folder or "no data folder"
        return None, [f"not compared: the validation text; {data['name']} is not in {where}"]
    part = corpus.split(data["validation_fraction"])[1]
    note = []
    if len(part) > _MOST_BYTES:
        note = [f"compared: the first {_MOST_BYTES:,} of {len(part):,} bytes of validation text"]
    tokens = streams(part[:_MOST_BYTES], evidence.rows)
    steps, batch = tokens.shape
    if not steps:
        return None, [f"not compared: the validation text; it is shorter than {batch} rows"]
    return Sample(
        tokens,
        {"uniform": torch.from_numpy(np.full((steps, batch), 0.5, np.float32))},
        options(({},) * batch),
    ), note


def _find(data: dict[str, Any], folder: Path | None) -> Corpus | None:
    for source in (PYTHON_REFERENCE, *_candidates(data, folder)):
        with suppress(OSError):  # what may not be read is not what was trained on
            corpus = read_corpus(source)
            if corpus.sha256 == data["sha256"]:
                return corpus
    return None


def _candidates(data: dict[str, Any], folder: Path | None) -> Iterator[str]:
    """Files as long as the corpus, and folders whose files are so together."""
    if folder is None:
        return
    if folder.is_file():
        yield str(folder)
        return
    sizes: Counter[Path] = Counter()
    for file in files_below(folder, readable=True):
        for place in (file, *file.parents):
            sizes[place] += file.stat().st_size
            if place == folder:
                break
    yield from (str(place) for place in sizes if sizes[place] == data["bytes"])


def _structure(writer: GraphWriter, evidence: Evidence) -> Finding:
    wide = writer.wide()
    drawn = sample(_model(wide), evidence.extent.structure_steps, 2, SEED)
    return numbers.structure(wide, drawn, training_logits, "logits")


def _bits(model: LanguageModel, evidence: Evidence) -> list[Finding]:
    """The bits of mixed work, and those of single operators."""
    drawn = sample(model, evidence.extent.bit_steps, bits.LARGEST_BATCH, SEED + 1)
    work = make_work(drawn, SEED)
    integers = bool(integer_matrices(model))
    findings = bits.findings(evidence.served, work, evidence.extent, SEED, integers=integers)
    return [*findings, *operators.operators()]


def _model(writer: GraphWriter) -> LanguageModel:
    assert isinstance(writer.model, LanguageModel)
    return writer.model
