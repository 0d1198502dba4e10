"""When who is refused is told to come again: then it is let in, where nobody else has come."""

import pytest

from service.errors import Overloaded
from tests.service.engine.queued import Line, Work

_STEP_S = 0.01
_MOST_S = 0.5


def _refusal(line: Line, steps: int) -> Overloaded | None:
    """Of a new caller's job of so many steps."""
    return line.schedule.overload("new", 1, steps, 99, _STEP_S, _MOST_S)


def _pass(line: Line, seconds: int) -> None:
    """The only slot works on."""
    left = round(seconds / _STEP_S)
    while left and line.jobs:
        (job,) = line.jobs
        assert isinstance(job, Work)
        done = min(left, job.left)
        job.left, left = job.left - done, left - done
        if not job.left:
            line.end(job)
            line.fill()


@pytest.mark.parametrize(
    ("callers", "jobs", "job_steps"),
    [
        (1, 2, 100),
        (2, 22, 100),  # of each caller one job is waited for, until there is no next
        (1, 10, 300),  # of each job no more than a hundred steps, until the last has its slot
    ],
)
def test_who_comes_again_when_told_is_let_in(callers: int, jobs: int, job_steps: int) -> None:
    line = Line(width=1)
    work = [Work(job_steps) for _ in range(jobs)]
    for number, job in enumerate(work):
        line.add(f"caller {number % callers}", job)
    before_the_engine_looks = _refusal(line, 100)
    line.fill()
    refused = _refusal(line, 100)
    assert refused is not None
    assert before_the_engine_looks is not None
    assert before_the_engine_looks.retry_after_s == refused.retry_after_s
    assert refused.retry_after_s == (jobs - 1) * job_steps * _STEP_S
    _pass(line, refused.retry_after_s - 1)
    assert _refusal(line, 100) is not None
    _pass(line, 1)
    assert _refusal(line, 100) is None


def test_little_that_waits_behind_a_long_job_is_waited_for_until_that_is_over() -> None:
    line = Line(width=1)
    line.add("one", Work(500), Work(90))
    line.fill()
    refused = _refusal(line, 100)
    assert refused is not None
    assert refused.retry_after_s == 5
    _pass(line, 4)
    assert _refusal(line, 100) is not None
    _pass(line, 1)
    assert _refusal(line, 100) is None


def test_turns_that_are_over_before_those_of_the_caller_are_not_waited_for() -> None:
    """Who has jobs waiting itself is let in by its own as well."""
    line = Line(width=1)
    for caller in ("first", "new", "other", "new", "other"):
        line.add(caller, Work(100))
    line.fill()
    refused = line.schedule.overload("new", 1, 100, 99, _STEP_S, most_s=1.0)
    assert refused is not None
    assert refused.retry_after_s == 3
    _pass(line, 2)
    assert line.schedule.overload("new", 1, 100, 99, _STEP_S, most_s=1.0) is not None
    _pass(line, 1)
    assert line.schedule.overload("new", 1, 100, 99, _STEP_S, most_s=1.0) is None
