"""The table of planted defects: `*.toml` beside this file, a stage of the project each.

A defect changes one file: the text before, which stands there exactly once, becomes the text after.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_STAGES = (
    "contract", "models", "training", "export", "service", "ink", "clients", "lab", "page",
    "deploy",
)  # fmt: skip


class StaleDefect(ValueError):
    """A defect whose text before is not in its file, or is there more than once."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a text."""

    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """What is planted where, and the tests that are likely to notice, quickest first; `listed` if
    it was once planted by hand and survived every test there was."""

    id: str
    what: str
    file: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    listed: bool = False

    def planted(self, source: str) -> str:
        """The source with the defect in it. Raises `StaleDefect`."""
        for edit in self.edits:
            if (count := source.count(edit.before)) != 1:
                raise StaleDefect(f"{self.id}: {self.file} has {count} times: {edit.before!r}")
            source = source.replace(edit.before, edit.after)
        return source


def read_table(folder: Path = Path(__file__).parent) -> list[Defect]:
    """All defects, in the order of the stages."""
    defects = []
    for stage in _STAGES:
        for entry in tomllib.loads((folder / f"{stage}.toml").read_text())["defect"]:
            single = {key: entry.pop(key) for key in ("before", "after") if key in entry}
            edits = tuple(Edit(**edit) for edit in entry.pop("edits", [single]))
            tests = tuple(entry.pop("tests"))
            defects.append(Defect(**entry, edits=edits, tests=tests))
    return defects
