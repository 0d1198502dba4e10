"""A page as it is asked for: its text broken into lines, and the hand it begins with."""

import math
import secrets

from service.errors import InvalidRequest
from service.ink import hands
from service.ink.best import Judge
from service.ink.breaking import LEAST_ROOM, break_text
from service.ink.layout import MM_PER_PX, Layout
from service.ink.letters import written
from service.ink.line import InkEdge
from service.ink.model import InkModel
from service.ink.page import Page, Written
from service.ink.plotter import HPGL_LONGEST_MM
from service.ink.schemas import MOST_CHARACTERS, HandwritingRequest, StrokesWithText
from service.state import Moment

_LARGEST_PAGE_PX = 16_000_000


async def make_page(body: HandwritingRequest, model: InkModel, judge: Judge | None) -> Page:
    """A request laid out, in the hand it asks for; with a `judge` each line is the best of several.

    Raises `InvalidRequest` for a text that cannot be written and for a hand that is none.
    """
    text = written(body.text, model.manifest)
    if not text.strip():
        raise InvalidRequest("text has nothing but spaces", "text")
    if len(text) > MOST_CHARACTERS:
        raise InvalidRequest(
            f"text has {len(text):,} characters with its ligatures written out; at most "
            f"{MOST_CHARACTERS:,} are taken",
            "text",
        )
    moment, style = await _begin(body, model)
    units = model.manifest.ink
    advance = hands.advance_in(moment, units, body.bias)
    layout = body.layout(units.units_per_line, advance)
    room = layout.room
    if room < LEAST_ROOM:
        left_px = max(layout.width_px - 2 * layout.margin_px, 0)
        raise InvalidRequest(
            f"the margins leave {math.floor(left_px)} px of the width, too few for two characters, "
            f"which take {math.ceil(layout.width_px_of(LEAST_ROOM))} in this hand",
            "line_height",
        )
    lines = break_text(text, room)
    if not any(lines[body.first_line :]):
        last = max(number for number, line in enumerate(lines) if line)
        raise InvalidRequest(
            f"first_line is {body.first_line}; the last line with a text is {last}", "first_line"
        )
    area_px = layout.width_px * layout.height_px(len(lines))
    if area_px > _LARGEST_PAGE_PX:
        raise InvalidRequest(
            f"text has {len(lines)} lines, a page of {area_px:,.0f} px; "
            f"at most {_LARGEST_PAGE_PX:,}", "text",
        )  # fmt: skip
    if body.format == "hpgl":
        _require_numbers_of_hpgl(layout, len(lines), on_sheets=body.page is not None)
    kept = [Written(line) for line in lines]
    return Page(body, model, layout, moment, style, kept, body.first_line, judge)


def _require_numbers_of_hpgl(layout: Layout, lines: int, *, on_sheets: bool) -> None:
    longest_mm = max(layout.width_px, layout.sheet_px(lines)) * MM_PER_PX
    if longest_mm > HPGL_LONGEST_MM:
        raise InvalidRequest(
            f"format is hpgl, which has no numbers for a page of {longest_mm:.3f} mm; at most "
            f"{HPGL_LONGEST_MM:.3f}{'' if on_sheets else ', or set page for sheets'}", "format",
        )  # fmt: skip


async def _begin(body: HandwritingRequest, model: InkModel) -> tuple[Moment[InkEdge], str | None]:
    """The hand a request asks for, and what to call it; nothing, if that is a state token."""
    if body.state is not None:
        return hands.from_token(model, body.state, body.seed, body.state_policy), None
    seed = secrets.randbits(53) if body.seed is None else body.seed
    style = hands.by_seed(model, seed) if body.style is None else body.style
    moment = await hands.hand_in(model, style, seed, body.state_policy)
    # A hand made from strokes comes back as a token, so that they need not be sent again.
    return moment, model.codec.encode(moment) if isinstance(style, StrokesWithText) else style
