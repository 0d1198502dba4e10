"""Pictures of what the service lives through: each line has its name, and none its axis from
another."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from tests.reliability import plots
from tests.training.legible import LEAST_PX, smallest_letters_px


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """What would be written."""
    drawn: list[Figure] = []
    monkeypatch.setattr(plots, "save", lambda figure, _: drawn.append(figure))
    return drawn


def _panel(title: str, unit: str, series: dict[str, list[float]], **more: Any) -> dict[str, Any]:
    lines = [{"name": n, "points": tuple(enumerate(values))} for n, values in series.items()]
    told = {"title": title, "type": "timeseries", "unit": unit, "place": (0, 0, 8, 7), "right": ()}
    return told | {"series": lines} | more


def test_a_board_has_numbers_above_and_lines_that_are_not_nothing(figures: list[Figure]) -> None:
    panels = [
        _panel("Error of it", "percentunit", {"pen": [0.5, 0.25]}, type="stat"),
        _panel("Ready", "none", {"ready": [1]}, type="stat"),
        _panel("Requests", "reqps", {"pen": [1.0, 2.0], "idle": [0.0, 0.0]}),
        _panel("Memory", "bytes", {"resident": [2e6, 3e6], "cores": [0.5, 1.5]}, right=("cores",)),
        _panel("Queue", "s", {"p50": []}),
    ]
    plots.plot_board({"samples": panels}, Path("none.png"))
    error, ready, requests, memory, queue, _, cores = figures[0].axes
    assert [axes.texts[0].get_text() for axes in (error, ready)] == ["25%  pen", "1  ready"]
    told = [axes.get_title("left") for axes in (requests, memory, queue)]
    assert told == ["Requests, a second", "Memory, MB", "Queue, s"]
    names = [text.get_text() for text in requests.get_legend().get_texts()]
    assert names == ["pen"]
    assert [text.get_text() for text in memory.get_legend().get_texts()] == ["resident", "cores"]
    assert list(memory.lines[0].get_ydata()) == [2.0, 3.0]
    assert list(cores.lines[0].get_ydata()) == [0.5, 1.5]
    assert queue.get_legend() is None
    assert [axes.get_ylim()[0] for axes in (requests, memory, queue, cores)] == [0] * 4
    assert smallest_letters_px(figures[0]) >= LEAST_PX


def test_nothing_is_drawn_where_no_load_was_measured(figures: list[Figure]) -> None:
    """Of one caller beside another alone there would be a picture of limits."""
    plots.plot_overload({"callers": [{"p99_ms": 1.0}]}, Path("none.png"))
    assert not figures


@pytest.mark.parametrize("part", ["overload", "beside"])
def test_a_limit_says_what_it_is_of_and_good_answers_do_not_hide_the_others(
    figures: list[Figure], part: str
) -> None:
    whole, first = ({"p50": 1.0, "p99": ms} for ms in (40.0, 30.0))
    row = {"what": "text", "times_capacity": 1.5, "offered_per_s": 9.0, "answered_per_s": 8.0,
           "good_per_s": 7.0, "whole_ms": whole, "first_ms": first, "refusal_ms": None}  # fmt: skip
    plots.plot_overload({part: [row]}, Path("none.png"))
    rates, times = figures[0].axes
    limits = {text.get_text(): text.xy[1] for text in times.texts}  # type: ignore[attr-defined]
    assert limits == {
        "refusal in 5 ms": 5,
        "good: first byte in 50 ms": 50,
        "good: whole answer in 2,000 ms": 2000,
    }
    drawn = {
        line.get_label(): (*line.get_xdata(), *line.get_ydata())
        for axes in (rates, times)
        for line in axes.lines
        if axes is rates or line.get_linestyle() == "-"
    }
    assert drawn == {
        "offered": (1.5, 9.0),
        "answered": (1.5, 8.0),
        "good": (1.5, 7.0),
        "whole answer": (1.5, 40.0),
        "first byte": (1.5, 30.0),
        "refusal": (),
    }
    widths = {line.get_label(): line.get_linewidth() for line in rates.lines}
    assert widths["answered"] > 2 * widths["good"]
    assert rates.get_ylim()[0] == 0
    assert smallest_letters_px(figures[0]) >= LEAST_PX


def test_of_text_beside_ink_each_has_lines_of_its_own(figures: list[Figure]) -> None:
    """At each share of the capacity both were measured."""
    rows = []
    for share, what, rate in ((1, "text", 9), (1, "ink", 3), (2, "text", 8), (2, "ink", 2)):
        ms = {"p99": 10.0 * rate}
        rows.append({"what": what, "times_capacity": share, "offered_per_s": rate,
                     "answered_per_s": rate, "good_per_s": rate, "whole_ms": ms, "first_ms": ms,
                     "refusal_ms": ms})  # fmt: skip
    plots.plot_overload({"beside": rows}, Path("none.png"))
    for axes, names, unit in (
        (figures[0].axes[0], ("offered", "answered", "good"), 1),
        (figures[0].axes[1], ("whole answer", "first byte", "refusal"), 10),
    ):
        drawn = {
            line.get_label(): (list(line.get_ydata()), line.get_linestyle())  # type: ignore[arg-type]
            for line in axes.lines[:6]
        }
        text = {f"{name}, text": ([9 * unit, 8 * unit], "-") for name in names}
        assert drawn == text | {f"{n}, ink": ([3 * unit, 2 * unit], "--") for n in names}
    assert smallest_letters_px(figures[0]) >= LEAST_PX


def test_a_soak_is_drawn_by_minutes_each_line_of_its_own(figures: list[Figure]) -> None:
    samples = [
        {"minute": n / 2, "resident_mb": 500.0 + n, "threads": 10 + n, "files": 40 + n}
        for n in range(3)
    ]
    plots.plot_soak({"samples": samples}, Path("none.png"))
    memory, held = figures[0].axes
    (resident,) = memory.lines
    assert (list(resident.get_xdata()), list(resident.get_ydata())) == (
        [0, 0.5, 1],
        [500, 501, 502],
    )
    drawn = {line.get_label(): list(line.get_ydata()) for line in held.lines}
    assert [axes.get_ylim()[0] for axes in (memory, held)] == [0, 0]
    assert drawn == {"open files": [40, 41, 42], "threads": [10, 11, 12]}
    titles = [axes.get_title("left") for axes in (memory, held)]
    assert titles == ["Resident memory, MB", "Open files and threads, how many"]
    assert smallest_letters_px(figures[0]) >= LEAST_PX
