"""What a row of a load measurement says of its outcomes."""

from dataclasses import replace

import pytest

from bench.rows import Load, LoadRow, Outcome, Spread, Window, percentiles, spread, summarise

_LOAD = Load("fake", "closed", 2, None, True, "fixed")
_WINDOW = Window(10.0, 20.0)


def _row(*outcomes: Outcome) -> LoadRow:
    return summarise(_LOAD, outcomes, _WINDOW, 0.25)


def _outcome(intended_s: float, first_ms: float, all_ms: float, status: str = "200") -> Outcome:
    return Outcome(intended_s, intended_s + first_ms / 1e3, intended_s + all_ms / 1e3, 200, status)


def test_a_percentile_is_a_sample_by_nearest_rank() -> None:
    """The least one that so large a part does not exceed; nothing is made up between two."""
    samples = [30.0, 10.0, 20.0, 40.0]
    assert percentiles(samples, 0.25, 0.5, 0.51, 1.0, digits=1) == [10.0, 20.0, 30.0, 40.0]


def test_a_spread_is_in_milliseconds() -> None:
    """Seconds go in, milliseconds come out, in whatever order."""
    found = spread(seconds / 1e3 for seconds in range(100, 0, -1))
    assert found is not None
    assert (found.p50, found.p90, found.p99, found.samples) == (50.0, 90.0, 99.0, 100)


@pytest.mark.parametrize(("samples", "told"), [(9_999, False), (10_000, True)])
def test_p999_is_told_only_of_ten_thousand_samples(samples: int, told: bool) -> None:
    """Fewer than ten samples beyond it would be an anecdote."""
    found = spread([n / 1e6 for n in range(samples, 0, -1)])
    assert found is not None
    assert found.p999 == (9.99 if told else None)


def test_goodput_counts_requests_whose_first_byte_came_within_50_ms() -> None:
    """Just below is good, just above is not, however soon the whole answer came."""
    row = _row(_outcome(12, 49.9, 900), _outcome(13, 10, 60), _outcome(14, 50.1, 51))
    assert row.goodput_per_s == pytest.approx(0.2)
    assert row.requests_per_s == pytest.approx(0.3)


def test_a_failed_request_counts_as_an_error_and_as_nothing_else() -> None:
    """Errors are counted by status; a fast refusal improves no figure."""
    row = _row(_outcome(12, 1, 1, "503"), _outcome(13, 1, 1, "503"), _outcome(14, 30, 40))
    assert row.errors == {"503": 2}
    assert row.requests == 3
    assert row.goodput_per_s == row.requests_per_s == pytest.approx(0.1)
    assert row.bytes_per_s == pytest.approx(20)
    assert row.latency_ms is not None
    assert (row.latency_ms.p50, row.latency_ms.samples) == (40.0, 1)


def test_rates_are_of_what_ended_in_the_window_and_spreads_of_what_was_meant_in_it() -> None:
    """A request across either border counts once as work done and once as a latency."""
    before, across, late = _outcome(9, 10, 500), _outcome(9.5, 10, 1_000), _outcome(19.5, 10, 2_000)
    row = _row(before, across, late)
    assert row.requests_per_s == pytest.approx(0.1)  # `across` ended in the window
    assert row.latency_ms is not None
    assert (row.latency_ms.p50, row.latency_ms.samples) == (2_000.0, 1)  # `late` began in it


def test_bytes_are_of_what_ended_in_the_window_and_errors_of_what_was_meant_in_it() -> None:
    """Which begins with its first moment and ends before its last."""
    ended = [_outcome(intended_s, 10, 1_000) for intended_s in (9.5, 9.6, 12)]
    failed = [_outcome(intended_s, 1, 1, "503") for intended_s in (9, 10, 10, 19, 20)]
    row = _row(*ended, _outcome(19.5, 10, 2_000), *failed)
    assert row.bytes_per_s == pytest.approx(60)
    assert row.errors == {"503": 3}


def test_goodput_is_of_what_ended_in_the_window_and_each_spread_of_what_was_meant_in_it() -> None:
    begun = Outcome(9.5, 9.51, 10.5, 200, gaps_s=(0.5,))  # before the window, and ends within it
    slow = Outcome(9.8, 9.86, 10.2, 200, gaps_s=(0.5,))
    within = Outcome(12, 12.03, 12.9, 200, gaps_s=(0.1, 0.2))
    late = Outcome(19.5, 19.57, 21.5, 200, gaps_s=(0.3,))
    row = _row(begun, slow, within, late)
    assert (row.requests_per_s, row.goodput_per_s) == (0.3, 0.2)
    assert row.first_byte_ms is not None
    assert row.gap_ms_per_byte is not None
    assert (row.first_byte_ms.p50, row.first_byte_ms.p99) == (30.0, 70.0)
    assert (row.gap_ms_per_byte.p50, row.gap_ms_per_byte.p99) == (200.0, 300.0)


def test_gaps_of_all_streams_are_taken_together() -> None:
    """The spread of gaps is over events, not over requests."""
    row = _row(
        Outcome(12, 12.01, 12.1, 200, gaps_s=(0.001, 0.002, 0.003)),
        Outcome(13, 13.01, 13.1, 200, gaps_s=(0.010,)),
    )
    assert row.gap_ms_per_byte is not None
    assert (row.gap_ms_per_byte.p50, row.gap_ms_per_byte.samples) == (2.0, 4)


def test_where_nothing_was_measured_nothing_is_said() -> None:
    """No requests give no percentiles, and still a row that can be printed."""
    row = _row()
    assert row.latency_ms is row.first_byte_ms is row.gap_ms_per_byte is None
    assert "0 requests" in row.line()


def test_a_line_tells_what_was_asked_and_how_long_it_took() -> None:
    whole, first = Spread(1.0, 2.0, 3.0, None, 9), Spread(4.0, 5.0, 6.0, None, 9)
    row = replace(_row(), latency_ms=whole, first_byte_ms=first)
    row = replace(row, requests_per_s=3.5, goodput_per_s=2.5, bytes_per_s=1500.0)
    asked, *times, rates, driver = row.line().split("; ")
    assert asked.split() == ["fake", "2", "clients", "streamed", "fixed", "0", "requests"]
    assert times == ["latency 1.0/2.0/3.0 ms", "first byte 4.0/5.0/6.0 ms"]
    assert (rates, driver) == ("1,500 bytes/s, good 2.5/s", "errors none, client 0.25 cores")


def test_the_driver_counts_for_what_it_took() -> None:
    assert _row().client_cores == 0.25
