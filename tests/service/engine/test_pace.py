"""What an engine knows of its own speed."""

import pytest

from service.engine.pace import Pace


def _pace() -> Pace:
    """A step of 1 ms and 0.1 ms for each row more; twice that with filters."""
    return Pace((1e-3, 1e-4), (2e-3, 2e-4))


def test_a_step_takes_longer_with_more_rows() -> None:
    pace = _pace()
    assert pace.step_s(1) == 1e-3
    assert pace.step_s(11) == pytest.approx(2e-3)
    assert pace.step_s(11, filtered=True) == pytest.approx(4e-3)


def test_it_follows_a_machine_that_slows_down_and_recovers() -> None:
    pace = _pace()
    for _ in range(60):
        pace.follow(11, 6e-3)
    assert pace.step_s(1) == pytest.approx(3e-3, rel=0.01)
    assert pace.step_s(1, filtered=True) == 2e-3
    for _ in range(60):
        pace.follow(11, 2e-3)
    assert pace.step_s(1) == pytest.approx(1e-3, rel=0.01)


def test_one_pause_is_no_new_pace() -> None:
    pace = _pace()
    pace.follow(1, 10.0)
    assert pace.step_s(1) < 1.5e-3


def test_time_outside_of_runs_makes_waits_longer_but_no_step() -> None:
    pace = _pace()
    before = pace.wait_s(16)
    for _ in range(60):
        pace.follow_chunk(3e-3, 2e-3)
    assert pace.step_s(1) == 1e-3
    assert pace.wait_s(16) == pytest.approx(1.5 * before, rel=0.01)


def test_few_filtered_rows_run_apart_and_many_do_not() -> None:
    pace = _pace()
    assert not pace.parts(1, 1)  # 1 and 2 ms for 2.2
    assert pace.parts(15, 1)  # 2.4 and 2 ms for 5
