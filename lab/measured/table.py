"""Tables of the page of results as Markdown, how figures are told, and where they came from."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

Json = dict[str, Any]

_COLUMNS = 100
_VERSIONS = ("python", "torch", "onnxruntime")

# Commands that have moved since a result was written.
_MOVED = {
    "python -m export contrast": "python -m lab norms",
    "python -m export pen-contrast": "python -m lab race",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a `|` in a cell is escaped."""
    return "\n".join(map(_row, [head, ["---"] * len(head), *rows]))


def _row(cells: Sequence[str]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def section(title: str, *parts: str) -> str:
    """A heading and paragraphs or tables under it."""
    return "\n\n".join([title, *(p if p.startswith("|") else _wrapped(p) for p in parts)])


def _wrapped(paragraph: str) -> str:
    return textwrap.fill(paragraph, _COLUMNS, break_long_words=False, break_on_hyphens=False)


def source(content: Json) -> str:
    """The command of a result as it is typed today, its machine and its versions."""
    written: str = content["command"]
    command = _MOVED.get(written, written).replace("python -m", ".venv/bin/python -m")
    facts = [f"{name} {version}" for name, version in content.get("versions", {}).items()]
    machine = content.get("machine")
    if machine is not None:
        processor = machine.get("processor", machine.get("architecture"))
        known = [f"{name} {machine[name]}" for name in _VERSIONS if name in machine]
        facts = [f"{processor}, {machine['cores']} cores", *known, *facts]
    return f"`{command}` on {', '.join(facts) or 'a machine that was not recorded'}."


def told(value: float | None, digits: int = 3) -> str:
    """A figure to so many digits; a dash for one that was not measured."""
    if value is None:
        return "-"
    if round(abs(value)) >= 10**digits or isinstance(value, int):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def kept(holds: bool) -> str:
    """Whether a goal was reached."""
    return "met" if holds else "**missed**"
