"""What was measured of the models themselves: parity, what layer norm does, legibility."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from contract.manifest import Manifest
from lab.analysis.invariance import WEIGHT_SCALE
from lab.measured.table import Json, kept, section, source, table, told
from lab.norms import LONGER, SMALL_BATCH
from models.norms import EPSILON


def models(shipped: Iterable[Manifest]) -> str:
    """What is shipped, and how it was trained."""
    head = (
        "model",
        "parameters",
        "layer norms a step",
        "bytes of state",
        "trained on",
        "updates of the last training",
        "validation loss, nats",
    )
    rows = [
        (
            f"`{m.name}`",
            told(m.parameters),
            told(m.layer_normalizations),
            told(bytes_of_state(m)),
            m.provenance["data"]["name"],
            told(m.provenance["updates"]),
            _loss(m),
        )
        for m in shipped
    ]
    return section(
        "## Models",
        "From the manifests in `artifacts/`. A step is a byte of text, a point of a pen, or a "
        "piece of ink that is read. The state is all that a model remembers of one text or line. "
        "The loss is per byte, per point, or per character read. Where logits are divided, it is "
        "by the temperature at which the held-out data is likeliest.",
        table(head, rows),
    )


def _loss(manifest: Manifest) -> str:
    trained = manifest.provenance
    loss = f"{trained['validation_loss']:.4f}"
    if (temperature := trained.get("temperature")) is not None:
        loss += f", logits divided by {temperature:.3f}"
    return f"{loss}, before it was rounded" if "rounded" in trained else loss


def bytes_of_state(manifest: Manifest) -> int:
    """Of one row, whatever it has read."""
    sizes = [math.prod(p.shape) * np.dtype(p.dtype).itemsize for p in manifest.ports.state]
    return sum(sizes)


def parity(shipped: Iterable[Manifest]) -> str:
    """The parity reports as the manifests have them."""
    return section(
        "## Parity",
        "`.venv/bin/python -m export verify --record artifacts/NAME`, with `--full` for the large "
        "counts. Each report names the versions that its graphs were made with. "
        "[exactness.md](exactness.md) says what each check is.",
        *_reports(shipped),
    )


def _reports(shipped: Iterable[Manifest]) -> Iterator[str]:
    for manifest in shipped:
        trained = manifest.provenance
        versions = trained.get("converted_with", trained["versions"])
        yield f"### `{manifest.name}`"
        yield ", ".join(f"{name} {version}" for name, version in versions.items()) + "."
        rows = [
            (f.name, told(f.value), told(f.bound), "yes" if f.holds else "**no**", f.detail)
            for f in manifest.parity or ()
        ]
        yield table(("check", "measured", "at most", "holds", "of what"), rows)


def norms(content: Json) -> str:
    """Twins, each of another norm."""
    columns = ("training", "served", "training_small_batch", "training_longer", "served_longer")
    twins = [
        (t["norm"], told(t["rate"]), *(f"{t[c]:.4f}" for c in columns)) for t in content["twins"]
    ]
    tried = [
        (norm, *("-" if nats is None else f"{nats:.4f}" for nats in rates.values()))
        for norm, rates in content["rates"].items()
    ]
    moved = [
        (p["network"], p["norm"], told(p["after_50"], 2), told(p["after_200"], 2))
        for p in content["perturbations"]
    ]
    units, batch = content["recipe"]["model"]["units"], content["recipe"]["batch"]
    total, rows, steps = content["validation_bytes"], batch["rows"], batch["steps"]
    counted, small, longer = (
        told(_in_whole_segments(total, *sizes))
        for sizes in ((rows, steps), (SMALL_BATCH, steps), (rows, LONGER * steps))
    )
    return section(
        "## Norms",
        source(content),
        f"LSTMs of {units} units, trained on Python's language reference in batches of {rows} rows "
        f"of {steps} steps, from the same seed. They differ in their norm, in their rate, which is "
        "the best of those below for the text that is measured, and in that under batch norm "
        "training begins every segment from the zero state, while the others carry theirs on. The "
        "figures are nats per byte of the validation text, with every segment from the zero state. "
        f"Of the {told(total)} bytes only those in whole segments count: {counted}, but {small} in "
        f"batches of {SMALL_BATCH} and {longer} where segments are {LONGER} times as long.",
        table(
            (
                "norm",
                "rate",
                "training mode",
                "served",
                f"training mode, batch of {SMALL_BATCH}",
                f"training mode, {LONGER} times as long",
                f"served, {LONGER} times as long",
            ),
            twins,
        ),
        "Served, at each rate that was tried:",
        table(("norm", *next(iter(content["rates"].values()))), tried),
        "What a change of 1e-14 in every number of the zero state of a float64 network has become "
        "in the output. W_h h has no variance there: layer norm of it alone (LSTM, GRU) divides "
        f"the change by the root of ε, {told(EPSILON**0.5, 2)}, at the first step and no other:",
        table(("network", "norm", "after 50 steps", "after 200"), moved),
    )


def _in_whole_segments(total: int, rows: int, steps: int) -> int:
    return total // rows // steps * steps * rows


def race(content: Json) -> str:
    """How much sooner layer norm gets there."""
    curves, aim = content["curves"], content["baseline_best"]
    reached = {"none": content["baseline_updates"], "layer": content["layer_updates"]}
    rows = [
        (norm, f"{min(loss for _, loss in curves[norm]):.4f}", told(updates))
        for norm, updates in reached.items()
    ]
    return section(
        "## Race of two pens",
        source(content),
        f"Two pens trained alike, {content['recipe']['batch']['rows']} lines an update, one with "
        "layer norm and one without normalisation, both from seed "
        f"{content['recipe']['training']['seed']} at a rate "
        f"of {content['recipe']['training']['learning_rate']}. With layer norm "
        f"{_sooner(content['ratio'])}. "
        "This does not confirm the paper: with the best rate of each pen, and with three seeds, "
        "[its finding did not come out](paper.md#section-65-handwriting).",
        table(("norm", "best, nats a point", f"updates to {aim:.4f}"), rows),
        "![Validation loss of both against updates; dashed, the best of the pen without "
        "normalisation](results/pen-contrast.png)",
    )


def _sooner(ratio: float | None) -> str:
    if ratio is None:
        return "it never gets to the other's best validation loss"
    return f"it takes **{told(ratio, 2)}** times the updates to the other's best validation loss"


def legibility(content: Json) -> str:
    """What an outside reader makes of the ink."""
    inks = {
        "real": "people's",
        "generated": "the model's, of the same texts",
        "wrong": "the model's, of another text",
        "invented": "the model's, of invented sentences",
    }
    rows = [
        (
            label,
            told(content[name]["lines"]),
            told(content[name]["characters"]),
            told(content[name]["edits"]),
            told(content[name]["cer"]),
        )
        for name, label in inks.items()
    ]
    wanted = [(g["name"], told(g["value"]), _bound(g), kept(g["met"])) for g in content["goals"]]
    reader, sentences = content["reader"], content["sentences"]
    return section(
        "## Legibility",
        source(content),
        "How well an outside reader, Tesseract "
        f"{reader['tesseract']}, reads `{content['model']['name']}` at bias "
        f"{told(content['bias'])}.",
        table(("ink", "lines", "characters", "edits", "character error rate"), rows),
        f"{content['texts_in_training']} of the {content['real']['lines']} texts were also written "
        f"by writers of the training data. Of {sentences['lines']} invented sentences "
        f"{sentences['ended']} end by the end-of-text rule, and {sentences['scribbled']} scribble "
        "off: they are more than twice as wide or high as nearly all lines of people.",
        table(("goal", "measured", "wanted", "reached"), wanted),
    )


def _bound(goal: Json) -> str:
    return f"at {'least' if goal['at_least'] else 'most'} {told(goal['bound'])}"


def analysis(content: Json) -> str:
    """The paper's table 1, computed."""
    entries = content["table_1"]
    kinds = tuple(dict.fromkeys(e["norm"] for e in entries))
    changes = dict.fromkeys(e["change"] for e in entries)
    found = {(e["change"], e["norm"]): _invariance(e) for e in entries}
    rows = [(change, *(found[change, kind] for kind in kinds)) for change in changes]
    return section(
        "## The paper's table 1",
        source(content | {"command": "python -m lab analysis"}),
        "How much the output of random float64 networks changes, relatively, when weights or data "
        "do. Where the paper says that the output is invariant, a cell has the largest change; "
        "where it says that it is not, the smallest. The weights are normal numbers times "
        f"{told(WEIGHT_SCALE)}: ε, which does not grow with them, breaks invariance to scale in "
        "proportion to 1 over their square, by up to 8e-7 without that factor. Padding, Fisher "
        "information and growth over 2,000 steps are in [results/analysis](results/analysis/).",
        table(("change", *(f"{kind} norm" for kind in kinds)), rows),
    )


def _invariance(entry: Json) -> str:
    if entry["invariant"] is not entry["invariant_in_paper"]:
        return "**not as in the paper**"
    if entry["invariant"]:
        return f"invariant, {told(entry['most'], 1)}"
    return f"changes, {told(entry['least'], 1)}"
