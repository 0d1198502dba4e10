"""Pictures of a run: a curve is of one server that answers in one way."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from bench import eight_bits, plots
from bench.sides import BUILDERS
from bench.target import SERVERS
from tests.training.legible import LEAST_PX, smallest_letters_px

_TIMES = "\N{MULTIPLICATION SIGN}"


def _row(target: str, rate_per_s: float, p50: float, *, streamed: bool) -> dict[str, Any]:
    spread = {"p50": p50, "p99": 2 * p50}
    return {
        "target": target, "rate_per_s": rate_per_s, "streamed": streamed, "first_byte_ms": spread,
        "errors": {},
    }  # fmt: skip


def test_whole_answers_and_streams_of_one_server_are_two_curves() -> None:
    """Each has rates of its own, so that one curve would go to and fro between them."""
    rows = [_row("service", rate, 100.0, streamed=False) for rate in (70, 110)]
    rows += [_row("service", rate, 10.0, streamed=True) for rate in (60, 90)]
    rows += [_row("litserve-stream", 60, 50.0, streamed=True)]
    figure, axes = pyplot.subplots()
    plots._curves(axes, rows, "first_byte_ms", "p99", "First byte")
    drawn = {tuple(line.get_xdata()): tuple(line.get_ydata()) for line in axes.lines}
    pyplot.close(figure)
    p99 = {(70, 110): (200.0, 200.0), (60, 90): (20.0, 20.0), (60,): (100.0,)}
    assert p99.items() <= drawn.items()


def test_a_bar_is_of_the_better_mode_and_says_which() -> None:
    told = [("service", False, 3.0), ("service", True, 2.0), ("service", True, 9.0)]
    told += [("service", True, 6.0)]  # of which the median is told
    told += [("service-int8", True, 1.0), ("litserve", False, 4.0)]
    rows = [{"target": t, "streamed": streamed, "bytes_per_s": v} for t, streamed, v in told]
    figure, axes = pyplot.subplots()
    plots._bars(axes, rows, "bytes_per_s", "Throughput", "bytes/s")
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    lengths = [bar.get_width() for bar in axes.patches]
    pyplot.close(figure)
    assert dict(zip(names, lengths, strict=True)) == {
        "Evenkeel, streaming": 6.0,
        "Evenkeel, in eight bits, streaming": 1.0,
        "LitServe": 4.0,
    }


def test_each_curve_has_its_name() -> None:
    rows = [_row("service", 1, 1.0, streamed=streamed) for streamed in (False, True)]
    rows += [_row("litserve-stream", 1, 1.0, streamed=True)]
    names = [str(line.get_label()) for line in plots._load_legend(plots._looks(rows))]
    assert names[:3] == ["Evenkeel", "Evenkeel, streaming", "LitServe, streaming"]


def test_every_server_has_a_curve_of_a_colour_and_a_mark_of_its_own() -> None:
    rows = [_row(target, 1, 1.0, streamed=streamed) for target, server in SERVERS.items()
            for streamed in server.modes]  # fmt: skip
    lines = plots._load_legend(plots._looks(rows))
    names = {str(line.get_label()): (line.get_color(), line.get_marker()) for line in lines}
    curves = {row["target"] for row in rows} | {row["target"] for row in rows if row["streamed"]}
    assert curves == SERVERS.keys()
    assert len(names) == len(rows) + 3  # and what marks and a line stand for


def test_who_failed_is_seen() -> None:
    """At 20 a second some failed, at 30 all."""
    rows = [_row("service", rate, 10.0, streamed=False) for rate in (10, 20)]
    rows[1]["errors"] = {"503": 1}
    rows += [
        _row("service", 30, 0.0, streamed=False) | {"first_byte_ms": None, "errors": {"503": 9}}
    ]
    figure, axes = pyplot.subplots()
    plots._curves(axes, rows, "first_byte_ms", "p50", "First byte")
    median, failed = axes.lines
    marks = axes.collections[0].get_facecolors()  # type: ignore[attr-defined]
    pyplot.close(figure)
    assert list(median.get_ydata()) == [10.0, 10.0]
    assert [tuple(mark[:3]) == (1, 1, 1) for mark in marks] == [False, True]
    assert (list(failed.get_xdata()), failed.get_marker()) == ([30], "x")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """What would be written."""
    drawn: list[Figure] = []

    def finish(figure: Figure | SubFigure, handles: Any, columns: int, image: Path) -> None:
        drawn.append(cast(Figure, figure.figure))
        pyplot.close(drawn[-1])

    monkeypatch.setattr(plots, "_finish", finish)
    return drawn


def _widths(axes: Axes) -> list[float]:
    return [bar.get_width() for bar in axes.patches]  # type: ignore[attr-defined]


def test_each_panel_of_the_load_is_of_its_own_column_and_loop(figures: list[Figure]) -> None:
    """Bars are of 32 clients with requests of one length, curves of the open loop."""
    rows = []
    for number, (loop, clients, lengths) in enumerate(
        [("open", None, "fixed"), ("closed", 32, "fixed"), ("closed", 1, "fixed"),
         ("closed", 32, "mixed")], 1,
    ):  # fmt: skip
        row = _row("service", 5, 10.0 * number, streamed=False)
        row |= {"loop": loop, "clients": clients, "lengths": lengths}
        row |= {"latency_ms": {"p50": 100.0 * number, "p99": 200.0}}
        rows.append(row | {"bytes_per_s": 1000.0 * number, "goodput_per_s": 3.0 * number,
                           "requests_per_s": 4.0})  # fmt: skip
    plots.plot_load({"load": rows}, Path())
    *curves, throughput, goodput = figures[0].axes
    titles = [axes.get_title("left") for axes in curves]
    assert titles == [
        "Whole answer, p50",
        "Whole answer, p99",
        "First byte, p50",
        "First byte, p99",
    ]
    drawn = [list(axes.lines[0].get_ydata()) for axes in curves]
    assert drawn == [[100.0], [200.0], [10.0], [20.0]]
    assert {axes.get_yscale() for axes in curves} == {"log"}
    good = [any(list(line.get_ydata()) == [50, 50] for line in axes.lines) for axes in curves]
    assert good == [False, False, True, True]  # it is a first byte that has to come in 50 ms
    assert (_widths(throughput), _widths(goodput)) == ([2000.0], [6.0])
    assert smallest_letters_px(figures[0]) >= LEAST_PX


def _step(side: str, us: float, ratio: float, *, threads: int = 1) -> dict[str, Any]:
    told = {"model": "handwriting", "side": side, "threads": threads}
    return told | {"us_median": us, "ratio_median": ratio}


def _told(axes: Axes) -> Sequence[str]:
    return [text.get_text() for text in axes.texts]


def test_a_step_has_a_bar_a_side_from_the_floor_to_the_slowest(figures: list[Figure]) -> None:
    rows = [_step("eager", 40.0, 4.0), _step("served", 10.0, 1.0), _step("loop", 20.0, 2.0)]
    rows += [_step("floor", 5.0, 0.5), _step("folded", 9.0, 0.9)]
    plots.plot_steps({"step": rows}, Path())
    (axes,) = figures[0].axes
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    titles = plots._TITLES
    assert names == [
        titles["floor"], titles["served"], "Evenkeel, folded", titles["loop"], titles["eager"]
    ]  # fmt: skip
    assert _widths(axes) == [40.0, 10.0, 20.0, 5.0, 9.0]
    places = [bar.get_y() + bar.get_height() / 2 for bar in axes.patches]  # type: ignore[attr-defined]
    assert places == pytest.approx([4, 1, 3, 0, 2])
    assert [list(line.get_xdata()) for line in axes.lines] == [[5.0, 5.0]]  # the floor, for all
    assert _told(axes)[:3] == [f"40 µs  {_TIMES}4.00", "10 µs", f"20 µs  {_TIMES}2.00"]
    assert axes.get_xlabel() == "µs per pen point"
    figures[0].draw_without_rendering()
    right = axes.get_window_extent().x1
    assert all(text.get_window_extent().x1 <= right for text in axes.texts)  # beside its bar
    assert smallest_letters_px(figures[0]) >= LEAST_PX


def test_a_picture_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    plots.plot_steps({"step": [_step("served", 10.0, 1.0)]}, tmp_path / "new")
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["step.png"]


def test_a_side_stands_where_the_slowest_of_its_bars_has_it() -> None:
    rows = [_step(side, us, 1.0, threads=n) for side, us, n in (
        ("loop", 10.0, 2), ("loop", 30.0, 1), ("eager", 20.0, 2), ("eager", 21.0, 1)
    )]  # fmt: skip
    assert plots._sides(rows) == ["eager", "loop"]


def test_fewer_threads_stand_above_more_and_are_lighter(figures: list[Figure]) -> None:
    plots.plot_steps({"step": [_step("served", 9.0, 1.0, threads=n) for n in (8, 1)]}, Path())
    eight, one = figures[0].axes[0].patches
    assert one.get_y() < 0 < eight.get_y() + eight.get_height()  # type: ignore[attr-defined]
    assert sum(one.get_facecolor()) > sum(eight.get_facecolor())  # type: ignore[arg-type]


def test_each_panel_is_of_its_model_and_the_names_of_colours_are_those_of_bars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name is of the side and number of threads whose bars have its colour."""
    drawn, named = list[Figure](), dict[str, Any]()

    def finish(figure: Any, handles: Any, columns: int, image: Path) -> None:
        drawn.append(figure)
        named.update({str(handle.get_label()): handle.get_facecolor() for handle in handles})
        pyplot.close(figure)

    monkeypatch.setattr(plots, "_finish", finish)
    rows = [_step(side, 9.0 * n, 1.0, threads=n) for side in ("served", "loop") for n in (1, 2)]
    other = _step("served", 70.0, 1.0) | {"model": "lstm-512"}
    plots.plot_steps({"step": [*rows, other]}, Path())
    ink, text = drawn[0].axes[:2]
    assert (_widths(ink), _widths(text)) == ([9.0, 18.0, 9.0, 18.0], [70.0])
    assert (ink.get_title("left"), text.get_title("left")) == ("handwriting", "lstm-512")
    assert (ink.get_xlabel(), text.get_xlabel()) == ("µs per pen point", "µs per byte")
    colours = [bar.get_facecolor() for bar in ink.patches]  # type: ignore[attr-defined]
    told = ("Evenkeel, 1 thread", "Evenkeel, 2 threads", "others, 1 thread", "others, 2 threads")
    assert named == dict(zip(told, colours, strict=True))
    assert len(set(colours)) == 4


def test_every_side_and_server_has_a_name_that_says_what_it_is() -> None:
    words = {
        "floor": "floor", "served": "Evenkeel", "loop": "step.onnx", "openvino": "OpenVINO",
        "compile": "torch.compile", "torchscript": "TorchScript", "eager": "PyTorch",
        "service": "Evenkeel", "litserve": "LitServe", "bentoml": "BentoML", "plain": "FastAPI",
    }  # fmt: skip
    assert plots._TITLES.keys() == {*BUILDERS, *eight_bits.BUILDERS}
    for side, title in plots._TITLES.items():
        assert words[side.removesuffix("-int8")] in title
        assert ("8 bits" in title) == side.endswith("-int8")
    assert plots._SERVERS.keys() == SERVERS.keys()
    for streaming, looks in ((False, plots._SERVERS), (True, plots._STREAMING)):
        for server, (title, *_) in looks.items():
            assert title.startswith(words[server.removesuffix("-int8").removesuffix("-stream")])
            assert ("eight bits" in title) == server.endswith("-int8")
            assert ("streaming" in title) == (streaming or server.endswith("-stream"))


def test_every_picture_is_of_a_section() -> None:
    from bench.__main__ import SECTIONS  # here, because it is slow to import

    assert plots.PICTURES.keys() <= SECTIONS.keys()
