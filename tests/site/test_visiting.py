"""Visits do not get into one another's way, and radios of one group not into another's."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.site import visiting
from tests.site.visiting import Visitor

_COUNTS = """
globalThis.visits = (globalThis.visits ?? 0) + 1;
document.querySelector("#write-text").value = globalThis.visits;
"""
_RADIOS = """
for (const [name, value] of [["a", 1], ["a", 2], ["b", 3]]) {
  const radio = Object.assign(document.createElement("input"), { type: "radio", name, value });
  document.querySelector("#write-form").append(radio);
  radio.checked = true;
}
"""
_VALUE = ["look", "#write-text", "value"]


@pytest.fixture
def module(modules: Path, tmp_path: Path) -> Callable[[str], str]:
    """Where a visit finds a module of this text."""

    def written(text: str) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.js"
        path.write_text(text)
        return os.path.relpath(path, modules)

    return written


@pytest.mark.parametrize(
    ("text", "patience_s", "told"),
    [
        ("process.exit();", 60, "it does not end"),
        ("for (;;);", 0.1, "it does not end"),
        ("throw new Error('no page');", 60, "no page"),
    ],
    ids=["killed", "hung", "failed"],
)
def test_a_visit_that_fails_leaves_nothing_to_the_next(
    modules: Path, module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, text: str,
    patience_s: float, told: str,
) -> None:  # fmt: skip
    """Neither a process that is at its end nor what goes on in one."""
    counts = module(_COUNTS)
    with Visitor(modules) as visit:
        assert [visit(_VALUE, module=counts) for _ in range(2)] == [["1"], ["2"]]
        with monkeypatch.context() as hurry:
            hurry.setattr(visiting, "_PATIENCE_S", patience_s)
            with pytest.raises(AssertionError, match=told):
                visit(module=module(text))
        assert visit(_VALUE, module=counts) == ["1"]


def test_a_radio_that_is_chosen_unchooses_its_group_alone(
    visit: Visitor, module: Callable[[str], str]
) -> None:
    chosen = ["all", "input[type=radio]:checked", "value"]
    assert visit(chosen, module=module(_RADIOS)) == [["2", "3"]]
