"""Pictures: what comes of more than the service can do, and memory over a long time. Rows are as
they stand in JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.figures import DASHED, GREY, SMALL_PT, empty, save, subplots

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
_LEGEND_BELOW = 4.5  # times its letters
_LINE_CHARACTERS = 40  # of names in one line below a panel
_COLUMNS = 2  # of the dashboard, as a picture
_NUMBERS_IN = 1.3
# As they are told, and how many of the unit make one of those.
_UNITS = {"none": ("", 1.0), "reqps": ("a second", 1.0), "bytes": ("MB", 1e6)}
_OURS, _OTHER, _BAD = "#0b7a6f", "#7a5ba8", "#c8480f"
_LIMIT: dict[str, Any] = {"color": GREY, "linestyle": DASHED, "linewidth": 1}
_LIMITS_MS = {"refusal": 5, "good: first byte": 50, "good: whole answer": 2000}
# For those that cannot tell colours by themselves, and for grey print.
_DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One line of a panel: `(seconds since the first, value)`."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """A panel of the dashboard with the answers to its questions."""

    title: str
    type: str
    unit: str
    place: tuple[int, int, int, int]  # x, y, w and h, of 24 columns
    series: Sequence[Series]
    right: Sequence[str] = ()  # names of series that have an axis of their own


def plot_overload(tables: Tables, image: Path) -> None:
    """Answers a second, and times at p99, over how much was offered: of text, or where that was not
    measured alone, of text and of the ink beside it. No picture where neither was."""
    rows = tables.get("overload") or tables.get("beside", ())
    if not rows:
        return
    figure, (rates, times) = subplots(1, 2, 3.8)
    for what, dashes in zip(dict.fromkeys(row["what"] for row in rows), _DASHES, strict=False):
        mine = [row for row in rows if row["what"] == what]
        of = "" if len(mine) == len(rows) else f", {what}"
        _offered(rates, times, mine, of, dashes)
    for name, limit in _LIMITS_MS.items():
        times.axhline(limit, **_LIMIT)
        times.annotate(
            f"{name} in {limit:,} ms", (1, limit), (0, 2), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", va="bottom", fontsize=SMALL_PT, color=GREY,
        )  # fmt: skip
    times.set_yscale("log")
    times.set_ylim(2, 2 * max(_LIMITS_MS.values()))
    times.yaxis.set_major_formatter("{x:,.0f}")
    rates.set_ylim(bottom=0)
    for axes, title in ((rates, "Requests a second"), (times, "Milliseconds, p99")):
        axes.set_xlabel("offered, times capacity")
        _finish(axes, title)
    save(figure, image)


def _offered(
    rates: Any, times: Any, rows: Sequence[Mapping[str, Any]], of: str, dashes: str
) -> None:
    shares = [row["times_capacity"] for row in rows]
    # Where all that is answered is good, one line lies on the other.
    for column, label, look in (
        ("offered_per_s", "offered", {"color": "0.6", "marker": "^"}),
        ("answered_per_s", "answered", {"color": _OTHER, "marker": "s", "linewidth": 4}),
        ("good_per_s", "good", {"color": _OURS, "marker": "o", "markersize": 4}),
    ):
        rates.plot(shares, [row[column] for row in rows], dashes, label=label + of, **look)
    for column, label, look in (
        ("whole_ms", "whole answer", {"color": _OTHER, "marker": "s"}),
        ("first_ms", "first byte", {"color": _OURS, "marker": "o"}),
        ("refusal_ms", "refusal", {"color": _BAD, "marker": "v"}),
    ):
        known = [row for row in rows if row[column] is not None]
        times.plot(
            [row["times_capacity"] for row in known], [row[column]["p99"] for row in known],
            dashes, label=label + of, **look,
        )  # fmt: skip


def plot_soak(tables: Tables, image: Path) -> None:
    """Resident memory, threads and files."""
    samples = tables["samples"]
    minutes = [sample["minute"] for sample in samples]
    figure, panels = subplots(1, 2, 3.6)
    panels[0].plot(minutes, [s["resident_mb"] for s in samples], color=_OURS, linewidth=1)
    for column, label, colour in (("files", "open files", _OTHER), ("threads", "threads", _OURS)):
        values = [sample[column] for sample in samples]
        panels[1].plot(minutes, values, color=colour, linewidth=1, label=label)
    titles = "Resident memory, MB", "Open files and threads, how many"
    for axes, title in zip(panels, titles, strict=True):
        axes.set_ylim(bottom=0)
        axes.set_xlabel("minutes")
        _finish(axes, title)
    save(figure, image)


def plot_board(tables: Tables, image: Path) -> None:
    """The panels in the order of the dashboard: numbers as they were last, and lines, their names
    below. A line that is zero all the time is not drawn."""
    panels = tables["samples"]
    told = [panel for panel in panels if panel["type"] == "stat"]
    drawn = [panel for panel in panels if panel["type"] != "stat"]
    rows = -(-len(drawn) // _COLUMNS)
    figure = empty(_NUMBERS_IN + 2.9 * rows)
    above, below = figure.subfigures(2, 1, height_ratios=(_NUMBERS_IN, 2.9 * rows))
    widths = [panel["place"][2] for panel in told]
    for axes, panel in zip(above.subplots(1, len(told), width_ratios=widths), told, strict=True):
        last = [f"{_with_unit(s['points'][-1][1], panel['unit'])}  {s['name']}"
                for s in panel["series"] if s["points"]]  # fmt: skip
        axes.set_axis_off()
        axes.text(0, 1, "\n".join(last), fontsize=SMALL_PT, color=_OURS, va="top")
        axes.set_title(panel["title"].replace(" ", "\n", 1))
    table = below.subplots(rows, _COLUMNS, squeeze=False)
    for axes in table.flat[len(drawn) :]:
        axes.set_axis_off()
    for axes, panel in zip(table.flat, drawn, strict=False):
        _lines(axes, panel)
    save(figure, image)


def _lines(axes: Any, panel: Mapping[str, Any]) -> None:
    unit, scale = _UNITS.get(panel["unit"], (panel["unit"], 1.0))
    aside = axes.twinx() if panel["right"] else None
    moved = [one for one in panel["series"] if any(value for _, value in one["points"])]
    for number, one in enumerate(moved):
        is_right = one["name"] in panel["right"]
        at, values = zip(*one["points"], strict=True)
        look = {"linestyle": _DASHES[number % len(_DASHES)], "color": f"C{number}"}
        (aside if is_right else axes).plot(
            at, [v if is_right else v / scale for v in values], **look
        )
        axes.plot([], [], label=one["name"], **look)  # so that one legend has both sides
    if aside is not None:
        aside.spines["right"].set_visible(True)
        aside.set_ylabel(", ".join(panel["right"]))
        aside.set_ylim(bottom=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")
    _finish(axes, f"{panel['title']}, {unit}" if unit else panel["title"])


def _with_unit(value: float, unit: str) -> str:
    match unit:
        case "percentunit":
            return f"{value:.0%}"
        case "s":
            return f"{value * 1e3:.0f} ms"
        case _:
            return f"{value:g}"


PICTURES = {"overload": plot_overload, "soak": plot_soak, "board": plot_board}


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title)
    axes.grid(color="0.92")
    names = axes.get_legend_handles_labels()[1]
    if names:
        columns = 2 if sum(map(len, names)) > _LINE_CHARACTERS else len(names)
        axes.legend(
            fontsize=SMALL_PT, ncols=columns, loc="upper center", bbox_to_anchor=(0.5, 0),
            borderaxespad=_LEGEND_BELOW,
        )  # fmt: skip
