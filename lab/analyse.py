"""The paper's analysis, computed: `python -m lab analysis [--out FOLDER]`.

Prints tables, writes them as JSON and draws three plots. No data and no training are needed.
"""

import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import Tensor

from export.results import write_json
from lab.analysis import fisher, growth, invariance, padding, plots

_SHOWN_STEPS = (1, 10, 100, 1000, 1900, 1990, 2000)


def analyse(out: Path) -> bool:
    """Measure everything; False when the measured table 1 is not the paper's."""
    out.mkdir(parents=True, exist_ok=True)
    entries = invariance.table()
    worked, sentences = padding.worked_table(), padding.padded_sentences()
    doublings, input_scales = fisher.doublings(), fisher.input_scales()
    growths = [growth.growth(norm, gain) for norm, gain in growth.RUNS]
    print_table(entries)
    print_padding(worked, sentences)
    print_fisher(doublings, input_scales)
    print_growth(growths)
    plots.plot_table(entries, out / "table1.png")
    plots.plot_curvature(out / "curvature.png")
    plots.plot_growth(growths, out / "growth.png")
    content = {
        "table_1": [asdict(e) | {"invariant": e.invariant} for e in entries],
        "worked_table": _plain(asdict(worked)),
        "padded_sentences": asdict(sentences),
        "doubled_weight_vector": [asdict(d) for d in doublings],
        "inputs_ten_times_larger": [asdict(s) for s in input_scales],
        "growth": [_shown(g) for g in growths],
        "versions": {"python": platform.python_version(), "torch": version("torch")},
    }
    write_json(out / "analysis.json", content)
    print(f"\nwritten to {out}")
    return all(e.invariant is e.invariant_in_paper for e in entries)


def print_table(entries: list[invariance.Entry]) -> None:
    """Table 1: the largest change where invariant, the smallest where not."""
    print("Table 1. Relative change of the output, over random networks in float64")
    print(f"{'':28}" + "".join(f"{kind + ' norm':>28}" for kind in invariance.KINDS))
    for start in range(0, len(entries), len(invariance.KINDS)):
        row = entries[start : start + len(invariance.KINDS)]
        print(f"{row[0].change:28}" + "".join(f"{_verdict(e):>28}" for e in row))


def _verdict(entry: invariance.Entry) -> str:
    if entry.invariant is None:
        return f"UNCLEAR {entry.least:.0e} to {entry.most:.0e}"
    found = f"invariant {entry.most:.0e}" if entry.invariant else f"changes {entry.least:.0e}"
    return found if entry.invariant is entry.invariant_in_paper else f"{found} NOT AS PAPER"


def print_padding(worked: padding.Worked, sentences: padding.Sentences) -> None:
    """The 5x3 table both ways, and the padded sentences."""
    print("\nFive rows, normalised per row (layer norm) and per column (batch norm)")
    for z, row, column in zip(worked.z, worked.per_row, worked.per_column, strict=True):
        print(f"  {_numbers(z, '.0f')}   {_numbers(row)}   {_numbers(column)}")
    print(
        f"Zero rows below them move the five rows by {worked.row_moved_by_padding:.1g} (layer), "
        f"{worked.column_moved_by_padding:.2f} (batch)\n"
        f"A zero row becomes {_numbers(worked.padded_row_per_row)} (layer: the bias), "
        f"{_numbers(worked.padded_row_per_column)} (batch); bias {_numbers(worked.bias)}\n"
        f"Self-attention, two sentences: the shorter moves by {sentences.layer_moved:.1g} (layer), "
        f"{sentences.batch_moved:.2f} (batch) beside the longer; "
        f"its padding is off the bias by {sentences.layer_padding_off_bias:.1g} (layer)"
    )


def _numbers(vector: Tensor, form: str = "+.4f") -> str:
    return "(" + ", ".join(f"{v:{form}}" for v in vector.tolist()) + ")"


def print_fisher(doublings: list[fisher.Doubling], scales: list[fisher.InputScale]) -> None:
    """Section 5.2: what a larger weight vector and larger inputs do to the Fisher information."""
    print(
        "\nA weight vector's norm doubled (layer norm: all of them), direction fixed; ratios.\n"
        "Length: of a fixed step in the vector, by the Fisher metric. Then blocks of its matrix"
    )
    names = [name for name in asdict(doublings[0]) if name != "norm"]
    print(f"{'':8}" + "".join(f"{name.replace('_', ' '):>16}" for name in names))
    for doubling in doublings:
        values = [v for name, v in asdict(doubling).items() if name != "norm"]
        cells = ["" if v is None else f"{v:.4g}" for v in values]
        print(f"{doubling.norm:8}" + "".join(f"{cell:>16}" for cell in cells))
    found = ", ".join(f"{s.norm} {s.curvature:.4g}" for s in scales)
    print(f"Inputs ten times larger, curvature of a unit's magnitude: {found}")


def print_growth(growths: list[growth.Growth]) -> None:
    """Norms at a few of the steps."""
    print("\nA fresh LSTM over 2,000 steps: norm of h, and of the gradient of a loss at the end")
    print(f"{'step':26}" + "".join(f"{step:>10}" for step in _SHOWN_STEPS))
    for result in growths:
        for what, curve in (("h", result.hidden), ("gradient", result.gradient)):
            values = "".join(f"{curve[step - 1].item():>10.3g}" for step in _SHOWN_STEPS)
            print(f"{result.label + ': ' + what:26}{values}")


def _shown(result: growth.Growth) -> dict[str, Any]:
    def at(curve: Tensor) -> dict[str, float]:
        return {str(step): curve[step - 1].item() for step in _SHOWN_STEPS}

    return {
        "norm": result.norm,
        "gain": result.gain,
        "hidden": at(result.hidden),
        "gradient": at(result.gradient),
        "steps": len(result.hidden),
    }


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    return {n: v.tolist() if isinstance(v, Tensor) else v for n, v in content.items()}
