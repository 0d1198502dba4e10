"""vpype, the program of people who plot, asked about a drawing; `make plotter-check` installs it in
an environment of its own."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.service.ink.plotted import Points

_ENVIRONMENT = Path(__file__).parents[3] / "build" / "vpype-venv"
INSTALLED = (_ENVIRONMENT / ".stamp").exists()
MM_PER_PX = 25.4 / 96
# A plotter that counts in fortieths of a mm from the lower left corner, whatever the paper.
_PLOTTER = """
[device.any]
name = "any"
plotter_unit_length = "0.025mm"
pen_count = 1

[[device.any.paper]]
name = "any"
y_axis_up = true
origin_location = ["0mm", "0mm"]
origin_location_reference = "botleft"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What vpype says of a drawing, in mm, y down; `up` is the way of the pen between strokes."""

    page: tuple[float, float]
    layers: int
    paths: int
    down: float
    up: float
    bounds: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A drawing as vpype has it: what it tells of it, the same with its strokes sorted, and its
    strokes `(k, 2)` in mm from the lower left corner as it writes them, in G-code and in HP-GL."""

    told: Told
    of_sorted: Told
    in_gcode: list[Points]
    in_hpgl: list[Points]


def asked(folder: Path, drawing: str) -> Read:
    """All of it, in one process."""
    path, config = folder / "page.svg", folder / "plotter.toml"
    path.write_text(drawing)
    config.write_text(_PLOTTER)
    hpgl, gcode = folder / "page.hpgl", folder / "page.gcode"
    plotter = ["--device", "any", "--page-size", "any", "--absolute", *_turn(drawing)]
    command: list[str | Path] = ["--config", config, "read", path, "stat", "write", *plotter, hpgl]
    command += ["gwrite", "--profile", "gcodemm", gcode, "linesort", "stat"]
    done = subprocess.run(
        [_ENVIRONMENT / "bin" / "vpype", *command],
        env=os.environ | {"HOME": str(folder)},  # with no settings of whoever asks
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    _, first, second = done.stdout.split("= Stats =")
    strokes = _of_hpgl(hpgl.read_text()), _of_gcode(gcode.read_text())
    return Read(told=_told(first), of_sorted=_told(second), in_hpgl=strokes[0], in_gcode=strokes[1])


def _turn(drawing: str) -> list[str]:
    """vpype turns what is wider than high, unless it is told not to."""
    (size,) = re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawing)
    return ["--landscape"] if float(size[0]) > float(size[1]) else []


def _told(text: str) -> Told:
    """Of lines like `Path count: 3`; those after `Totals` are of all layers."""
    facts: dict[str, list[float]] = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(": ")
        numbers = value.replace("np.float64", "")
        facts[name] = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", numbers)]
    mm = {name: tuple(n * MM_PER_PX for n in numbers) for name, numbers in facts.items()}
    (width, height), (left, top, right, bottom) = mm["Current page size"], mm["Bounds"]
    return Told(
        page=(width, height),
        layers=round(facts["Layer count"][0]),
        paths=round(facts["Path count"][0]),
        down=mm["Length"][0],
        up=mm["Pen-up length"][0],
        bounds=(left, top, right, bottom),
    )


def _of_hpgl(text: str) -> list[Points]:
    """Of `PU1,2;PD3,4,5,6;` for each stroke."""
    strokes = re.findall(r"PU(\d[\d,-]*);PD([\d,-]+)", text)
    return [np.array(",".join(s).split(","), float).reshape(-1, 2) / 40 for s in strokes]


def _of_gcode(text: str) -> list[Points]:
    """Of a `G00` and `G01` for each stroke."""
    strokes = [re.findall(r"X(\S+) Y(\S+)", stroke) for stroke in text.split("G00")[1:]]
    return [np.array(stroke, float) for stroke in strokes]
