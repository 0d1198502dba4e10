"""Who runs next, as facts about the order alone."""

import pytest

from service.engine.jobs import Job
from tests.service.engine.queued import SLICE_S, Line, Work


def test_one_request_is_not_held_up_by_two_hundred_of_another() -> None:
    line = Line(width=4)
    line.add("many", *[Work(urgent=True) for _ in range(200)])
    line.fill()
    for ticket in line.tickets:
        ticket.ran = ticket.served = True  # of its prompt: it has shown nothing yet
    line.add("one", Work())
    line.fill()
    assert line.callers == ["many"] * 3 + ["one"]


def test_callers_who_want_all_slots_end_with_as_many_each() -> None:
    line = Line(width=6)
    for caller in ("a", "b", "c"):
        line.add(caller, *[Work() for _ in range(10)])
        line.fill()
        line.run()
    assert line.callers == ["a"] * 2 + ["b"] * 2 + ["c"] * 2


def test_who_has_one_slot_fewer_takes_none_from_another() -> None:
    line = Line(width=3)
    line.add("a", Work(), Work())
    line.add("b", Work(), Work())
    line.fill()
    line.run()
    line.fill()
    assert line.callers == ["a", "a", "b"]


def test_a_free_slot_goes_to_the_first_who_came() -> None:
    line = Line(width=1)
    first, second, third = Work(), Work(), Work(urgent=True)
    line.add("", first, second)
    line.fill()
    line.add("", third)
    line.end(first)
    line.fill()
    assert line.jobs == [second]


def test_who_is_watched_shows_something_before_a_long_answer_ends() -> None:
    line = Line(width=2)
    long, longer = Work(1_000), Work(60_000)
    line.add("", long, longer)
    line.fill()
    line.run()
    watched = Work(urgent=True)
    line.add("", watched)
    line.fill()
    assert set(line.jobs) == {long, watched}


def test_of_those_who_may_give_way_it_is_the_one_that_is_due_last() -> None:
    line = Line(width=3)
    line.add("", Work(1_000), longest := Work(60_000), Work(2_000))
    line.fill()
    line.run()
    line.add("", Work(urgent=True))
    slot, _ = line.schedule.next(0.0)
    assert line.schedule.slots[slot].job is longest


def test_of_those_who_are_watched_the_caller_with_the_fewest_slots_is_first() -> None:
    line = Line(width=3)
    line.add("a", Work(), Work())
    line.add("b", Work())
    line.fill()
    line.run()
    second, first = Work(urgent=True), Work(urgent=True)
    line.add("a", second)
    line.add("b", first)
    _, ticket = line.schedule.next(0.0)
    assert ticket.job is first


def test_who_has_not_shown_anything_yet_is_not_parked_for_the_next() -> None:
    line = Line(width=1)
    line.add("", Work())
    line.fill()
    line.run()
    reading, other = Work(urgent=True), Work(urgent=True)
    line.add("", reading, other)
    line.fill()
    line.tickets[0].ran = line.tickets[0].served = True  # of its prompt, that is
    line.fill()
    assert line.jobs == [reading]


def test_what_nobody_watches_gives_way_before_its_first_output() -> None:
    line = Line(width=1)
    reading, watched = Work(), Work(urgent=True)
    line.add("", reading)
    line.fill()
    line.tickets[0].ran = line.tickets[0].served = True  # of its prompt, that is
    line.add("", watched)
    line.fill()
    assert line.jobs == [watched]


def test_an_answer_nobody_watches_waits_for_its_turn() -> None:
    line = Line(width=1)
    long, whole = Work(), Work()
    line.add("", long)
    line.fill()
    line.run()
    line.add("", whole)
    line.fill(now_s=0.9)
    assert line.jobs == [long]
    line.fill(now_s=SLICE_S)
    assert line.jobs == [whole]


def test_who_has_had_a_slice_comes_after_those_who_waited() -> None:
    line = Line(width=1)
    a, b, c = Work(), Work(), Work()
    line.add("", a, b, c)
    order = []
    for now_s in range(0, 8, 2):
        line.fill(float(now_s))
        line.run()
        order += line.jobs
    assert order == [a, b, c, a]


def test_the_slice_that_began_first_ends_first() -> None:
    line = Line(width=2)
    first, second, third = Work(), Work(), Work()
    line.add("a", first)
    line.fill()
    line.add("b", second)
    line.fill(now_s=0.5)
    line.run()
    line.add("a", Work())
    line.add("c", third)  # who has the fewest slots
    line.fill(now_s=1.2)
    assert set(line.jobs) == {second, third}


def test_who_has_been_shown_something_is_not_new_though_it_was_placed_again() -> None:
    line = Line(width=1)
    long, shown = Work(), Work(urgent=True)
    line.add("", long)
    line.fill()
    line.run()
    line.add("", shown)
    (ticket,) = line.schedule.waiting
    ticket.served = True
    line.fill()
    assert line.jobs == [long]


def test_who_gave_way_to_the_watched_keeps_its_turn() -> None:
    line = Line(width=1)
    first, later = Work(), Work()
    line.add("", first, later)
    line.fill()
    line.run()
    watched = Work(urgent=True)
    line.add("", watched)
    line.fill()
    assert line.jobs == [watched]
    line.end(watched)
    line.fill()
    assert line.jobs == [first]


def _closed_loop(clients: int, width: int, steps: int, chunk: int = 8) -> list[int]:
    """How many chunks each answer took of clients who come together and ask again at once."""
    line = Line(width)
    came: dict[Job, int] = {}
    took = []
    for now in range(40 * steps // chunk):
        for _ in range(clients - len(came)):
            job = Work(steps, urgent=True)
            came[job] = now
            line.add("", job)
        line.fill()
        line.run()
        line.schedule.steps += chunk
        for job in line.jobs:
            assert isinstance(job, Work)
            job.left -= chunk
            if not job.left:
                line.end(job)
                took.append(now + 1 - came.pop(job))
    return took


def test_twice_as_many_streams_as_slots_take_twice_as_long_each() -> None:
    took = _closed_loop(clients=8, width=4, steps=64)
    assert len(took) > 8 * 10
    assert max(took) <= 2 * 64 // 8 + 1


@pytest.mark.parametrize(("steps", "back"), [(100, True), (60_000, False)])
def test_who_gave_way_is_back_once_the_other_has_begun_unless_it_is_much_longer(
    steps: int, back: bool
) -> None:
    line = Line(width=1)
    early, late = Work(steps, urgent=True), Work(urgent=True)
    line.add("", early)
    line.fill()
    line.run()
    line.schedule.steps += 8
    line.add("", late)
    line.fill()
    assert line.jobs == [late]
    line.run()
    line.fill()
    assert line.jobs == [early if back else late]


def test_who_is_due_first_takes_a_slot_of_its_caller_not_of_one_who_has_as_many() -> None:
    line = Line(width=2)
    line.add("a", Work(1_000), Work())
    line.add("b", Work(2_000))
    line.fill()
    line.run()
    line.fill(now_s=0.5)
    placed_s = {ticket.job.steps_expected(): ticket.placed_s for ticket in line.tickets}
    assert placed_s == {2_000: 0.0, 100: 0.5}


def test_a_slice_lasts_though_others_came_before() -> None:
    line = Line(width=1)
    first, second = Work(), Work()
    line.add("", first)
    line.fill()
    line.run()
    line.schedule.steps += 8
    line.add("", second)
    line.fill(now_s=1.1)
    assert line.jobs == [second]
    line.run()
    line.fill(now_s=1.2)
    assert line.jobs == [second]


def test_a_slot_changes_hands_only_after_a_run() -> None:
    line = Line(width=1)
    line.add("a", Work(), Work())
    line.fill()
    line.add("b", Work(urgent=True))
    line.fill(now_s=100.0)
    assert line.callers == ["a"]


def test_who_is_not_read_from_gets_no_slot() -> None:
    line = Line(width=1)
    unread, other = Work(), Work()
    unread.paused = True
    line.add("", unread, other)
    line.fill()
    assert line.jobs == [other]


@pytest.mark.parametrize(("steps", "work"), [(10, 30), (1_000, 150)])
def test_a_request_waits_for_no_more_of_the_others_than_it_wants_itself(
    steps: int, work: int
) -> None:
    line = Line(width=1)
    line.add("", Work(1_000), Work(20), Work(30), Work(100))
    line.fill()
    assert line.schedule.work_before("", steps) == work


def test_a_request_waits_for_as_many_of_others_as_it_has_itself() -> None:
    line = Line(width=1)
    line.add("many", *[Work(50) for _ in range(201)])
    line.fill()
    assert line.schedule.work_before("one", 1_000) == 50
    assert line.schedule.work_before("many", 1_000) == 200 * 50


def test_who_is_not_read_from_holds_nobody_up() -> None:
    line = Line(width=1)
    unread = Work(50)
    unread.paused = True
    line.add("", Work(), unread)
    line.fill()
    assert line.schedule.waiting
    assert line.schedule.work_before("", 1_000) == 0


def test_who_has_left_holds_nobody_up() -> None:
    """And takes no room, though the engine has not looked at the queue since."""
    line = Line(width=2)
    runs, left, waits, leaves = (Work(50) for _ in range(4))
    line.add("one", runs, left)
    line.fill()
    line.add("one", waits, leaves)
    assert line.schedule.work_before("one", 1_000) == 100
    assert not line.schedule.has_room("one", 1, 2)
    leaves.cancelled = True
    assert line.schedule.work_before("one", 1_000) == 50
    assert line.schedule.has_room("one", 1, 2)
    assert not line.schedule.has_room("one", 2, 2)
    left.cancelled = True
    assert line.schedule.work_before("one", 1_000) == 0
    assert line.schedule.has_room("one", 2, 2)
    assert not line.schedule.has_room("one", 3, 2)
    runs.cancelled = waits.cancelled = True
    assert line.schedule.has_room("one", 9, 2)


@pytest.mark.parametrize(("steps", "retry_after_s"), [(0, 1), (100, 1), (130, 2), (310, 4)])
def test_who_is_refused_is_told_when_the_wait_will_be_short_enough(
    steps: int, retry_after_s: int
) -> None:
    """Once the one that waits has its slot; rounded up to whole seconds, one at least."""
    line = Line(width=1)
    line.add("", Work(steps), Work(200))
    line.fill()
    refused = line.schedule.overload("", 1, 1_000, size=9, step_s=0.01, most_s=1.0)
    assert refused is not None
    assert refused.retry_after_s == retry_after_s
    assert refused.message == "others would hold it up for 2.0 s; at most 1.0"
    assert line.schedule.overload("", 1, 1_000, size=9, step_s=0.01, most_s=2.0) is None


def test_a_queue_that_one_has_filled_has_room_for_another() -> None:
    line = Line(width=1)
    line.add("many", *[Work() for _ in range(101)])
    line.fill()
    assert not line.schedule.has_room("many", 1, 100)
    assert line.schedule.has_room("one", 50, 100)
    assert not line.schedule.has_room("one", 51, 100)


def test_those_that_free_slots_take_do_not_wait() -> None:
    line = Line(width=4)
    line.add("other", Work())
    line.fill()
    assert line.schedule.has_room("one", 5, 2)
    assert not line.schedule.has_room("one", 6, 2)


def test_a_request_larger_than_the_queue_is_let_in_where_nobody_else_is() -> None:
    line = Line(width=1)
    assert line.schedule.has_room("one", 128, 1)
    line.add("one", Work())
    assert not line.schedule.has_room("one", 128, 1)
    line.fill()
    assert not line.schedule.has_room("one", 128, 1)


def test_those_whom_free_slots_will_take_hold_nobody_up() -> None:
    line = Line(width=4)
    line.add("", *[Work(3_000) for _ in range(4)])
    assert line.schedule.work_before("", 3_000) == 0
    line.add("", Work(3_000))
    assert line.schedule.work_before("", 3_000) == 3_000
    line.fill()
    assert line.schedule.work_before("", 3_000) == 3_000


def test_who_waits_already_has_its_share_of_the_queue_and_no_less() -> None:
    line = Line(width=1)
    line.add("many", *[Work() for _ in range(8)])
    line.fill()
    line.add("one", Work())
    assert line.schedule.has_room("one", 3, 8)
    assert not line.schedule.has_room("one", 4, 8)


def test_of_those_who_wait_the_one_that_is_due_first_takes_a_slot_wherever_it_stands() -> None:
    line = Line(width=1)
    line.add("", Work(1_000))
    line.fill()
    line.run()
    line.add("", Work(2_000), short := Work(500))
    line.fill()
    assert line.jobs == [short]


def test_a_long_answer_that_has_had_its_slice_is_due_no_earlier_than_before() -> None:
    line = Line(width=2)
    line.add("a", long := Work(60_000))
    line.fill()
    line.add("b", Work(1_000))
    line.fill(now_s=0.5)
    line.run()
    line.add("b", Work(2_000))
    slot, _ = line.schedule.next(1.2)
    given_up = line.schedule.slots[slot]
    assert (given_up.job, given_up.due) == (long, 60_000)
