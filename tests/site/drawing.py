"""What visits to the Draw tab share: what is drawn, typed, pressed and looked at."""

from typing import Any

from tests.site.visiting import WRITTEN, Visitor, serving, stroke

ROUTE = "/v1/handwriting"
ASKED, START = ["asked", ROUTE], ["press", "#draw-start"]
PATHS, ERROR = ["all", "#draw-pad path", "@d"], ["look", "#draw-error"]
_BUTTONS = ("start", "stop", "undo", "clear", "use")
MAY = ["all", ", ".join(f"#draw-{name}" for name in _BUTTONS), "ariaDisabled"]
TYPED = [["fill", "#draw-text", "ho"], ["fill", "#draw-next", "and on"]]
QUIET = ["check", "#draw-live", False]
ONE = stroke((10, 100), (40, 60), (70, 100))
TWO = stroke((80.004, 70), (80.2, 70), (110, 130))
STROKES = [[[10, 100], [40, 60], [70, 100]], [[80, 70], [110, 130]]]


def may(found: list[str]) -> list[str]:
    """Which of the buttons may be pressed, of what `MAY` finds."""
    return [name for name, off in zip(_BUTTONS, found, strict=True) if off == "false"]


def draw(visit: Visitor, *steps: list[Any], **how: Any) -> list[Any]:
    """What is found on the Draw tab of a service that writes."""
    how = {"answers": serving(**{ROUTE: {"events": WRITTEN}}), "address": "#draw"} | how
    return visit(*steps, **how)
