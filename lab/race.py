"""How much sooner layer norm gets there: two pens trained alike, one without any normalisation.

The paper's handwriting experiment (Ba et al. 2016, section 6.5) at its batch of 8. Run:
`python -m lab race`.
"""

import json
import math
from dataclasses import asdict
from pathlib import Path

from export.results import machine, write_json
from lab.experiment import Metric
from lab.outcome import updates_to_reach
from models.norms import NormKind
from training.config import Recipe
from training.curves import plot_race
from training.log import LOG

NORMS: tuple[NormKind, ...] = ("layer", "none")
_LOSS = Metric(name="validation_loss", label="nats/point")
GOAL = 0.6  # of the baseline's updates


def race(runs: dict[NormKind, Path], recipe: Recipe, out: Path, command: str) -> None:
    """Compare finished runs by their logs; print, and write `pen-contrast.json` and `.png`, with
    the `command` that was asked for it."""
    curves: dict[str, list[tuple[int, float]]] = {
        norm: read_curve(run / LOG) for norm, run in runs.items()
    }
    best, needed = min((loss, update) for update, loss in curves["none"])
    reached = updates_to_reach(curves["layer"], best, _LOSS)
    ratio = None if reached is None else reached / needed
    print(f"none: best {best:.4f} nats/point after {needed} updates")
    print(f"layer: there after {reached} updates, best {min(c[1] for c in curves['layer']):.4f}")
    met = ratio is not None and ratio <= GOAL
    told = "none" if ratio is None else f"{ratio:.2f}"
    print(f"ratio {told}: goal {GOAL} {'met' if met else 'MISSED'}")
    content = {
        "command": command,
        "machine": machine(),
        "recipe": asdict(recipe),
        "baseline_best": best,
        "baseline_updates": needed,
        "layer_updates": reached,
        "ratio": ratio,
        "curves": curves,
    }
    write_json(out / "pen-contrast.json", content)
    title = f"handwriting, batch {recipe.batch.rows}: validation loss"
    plot_race(curves, best, out / "pen-contrast.png", title)


def read_curve(log: Path) -> list[tuple[int, float]]:
    """Update and validation loss of every row of a training log that is a number. Raises
    `ValueError` where none is."""
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    curve = [(row["update"], row["validation_loss"]) for row in rows]
    finite = [(update, loss) for update, loss in curve if math.isfinite(loss)]
    if not finite:
        raise ValueError(f"{log} has no validation loss that is a number")
    return finite
