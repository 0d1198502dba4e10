"""Pictures of a run: a curve is of one server that answers in one way."""

from typing import Any

from matplotlib import pyplot

from bench import plots


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
    plots._curves(axes, rows, "first_byte_ms", "First byte")
    drawn = {tuple(line.get_xdata()): tuple(line.get_ydata()) for line in axes.lines}
    pyplot.close(figure)
    p99 = {(70, 110): (200.0, 200.0), (60, 90): (20.0, 20.0), (60,): (100.0,)}
    assert p99.items() <= drawn.items()


def test_a_bar_is_of_the_better_mode_and_says_which() -> None:
    told = [("service", False, 3.0), ("service", True, 2.0), ("service", True, 9.0)]
    told += [("service-int8", True, 1.0), ("litserve", False, 4.0)]
    rows = [{"target": t, "streamed": streamed, "bytes_per_s": v} for t, streamed, v in told]
    figure, axes = pyplot.subplots()
    plots._bars(axes, rows, "bytes_per_s", "Throughput", "bytes/s")
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    lengths = [bar.get_width() for bar in axes.patches]
    pyplot.close(figure)
    assert dict(zip(names, lengths, strict=True)) == {
        "Evenkeel, streaming": 5.5,
        "Evenkeel, in eight bits, streaming": 1.0,
        "LitServe": 4.0,
    }


def test_each_curve_has_its_name() -> None:
    rows = [_row("service", 1, 1.0, streamed=streamed) for streamed in (False, True)]
    rows += [_row("litserve-stream", 1, 1.0, streamed=True)]
    names = [str(line.get_label()) for line in plots._load_legend(plots._looks(rows))]
    assert names[:3] == ["Evenkeel", "Evenkeel, streaming", "LitServe, streaming"]
