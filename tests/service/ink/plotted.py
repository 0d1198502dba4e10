"""What a pen draws that follows the commands for plotters, or a drawing for them: its strokes."""

import re
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]


def of_hpgl(text: str) -> list[Points]:
    """The strokes of a pen that follows HP-GL, in mm."""
    drawn: list[list[list[float]]] = []
    start, *commands, end = [command.strip() for command in text.split(";")]
    assert (start, commands[0], commands[-1], end) == ("IN", "SP1", "SP0", "")
    for command in commands[1:-1]:
        numbers = [int(number) for number in command[2:].split(",")]
        places = [[x / 40, y / 40] for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        if command[:2] == "PU":
            drawn.append(places)
        else:
            assert command[:2] == "PD"
            drawn[-1] += places
    assert drawn.pop() == [[0, 0]]
    return [np.array(stroke) for stroke in drawn]


def of_gcode(text: str) -> list[Points]:
    """The strokes of a pen that follows G-code, in mm."""
    drawn: list[list[list[float]]] = []
    at, is_up = [0.0, 0.0], False
    for line in text.splitlines():
        words = {word[0]: float(word[1:]) for word in line.split()}
        if "Z" in words:
            is_up = words["Z"] > 0
            if not is_up:
                drawn.append([at])
        elif "X" in words:
            at = [words["X"], words["Y"]]
            assert (words["G"] == 0) == is_up, "the pen writes no faster than told"
            if not is_up:
                drawn[-1].append(at)
    assert is_up
    return [np.array(stroke) for stroke in drawn]


def of_svg(text: str) -> list[Points]:
    """The strokes of a drawing, in mm."""
    root = ElementTree.fromstring(text)
    width, height = (float(root.attrib[name].removesuffix("mm")) for name in ("width", "height"))
    assert root.attrib["viewBox"].split() == ["0", "0", f"{width}", f"{height}"]
    paths = [e.attrib["d"] for e in root.iter() if e.tag.endswith("}path")]
    numbers = [re.findall(r"-?[\d.]+", path) for path in paths]
    return [np.array(found, float).reshape(-1, 2) for found in numbers]


def as_written(drawn: list[Points], written: list[Points]) -> list[Points]:
    """All strokes in the order and the direction in which they were written."""

    def apart(one: Points, other: Points) -> float:
        if len(one) == len(other):  # a ring begins where it ends
            return float(np.abs(one - other).max())
        return float(np.abs(one[[0, -1]] - other[[0, -1]]).max() + abs(len(one) - len(other)) // 2)

    left, found = [*drawn, *(stroke[::-1] for stroke in drawn)], []
    for stroke in written:
        nearest = min(range(len(left)), key=lambda n: apart(left[n], stroke))
        found.append(left[nearest])
        twin = (nearest + len(left) // 2) % len(left)
        left = [s for n, s in enumerate(left) if n not in (nearest, twin)]
    assert left == []
    return found


def in_the_air(strokes: list[Points]) -> float:
    """How far a pen goes between them, from the corner and back."""
    corner = np.zeros(2)
    ways = zip([corner, *(s[-1] for s in strokes)], [*(s[0] for s in strokes), corner], strict=True)
    return sum(float(np.hypot(*(end - begin))) for begin, end in ways)
