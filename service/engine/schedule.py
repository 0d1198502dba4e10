"""Who runs next: callers take turns, nobody waits for a first byte behind an answer without end.

Decisions alone, no threads and no tensors; the engine carries them out between two chunks.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from service.engine.jobs import Job
from service.engine.terms import Terms
from service.errors import Overloaded, ServiceError


@dataclass(slots=True)
class Ticket:
    """A job's place in the order, and the terms it was asked for on.

    `turn` counts up from the first job that came, `due` is the step at which it would be over, had
    it had a slot ever since; `ran` is whether it has run since it was placed, `served` whether it
    ever did.
    """

    job: Job
    caller: str
    deadline_s: float
    turn: int
    due: int
    placed_s: float = 0.0
    ran: bool = False
    served: bool = False

    def end(self, error: ServiceError) -> None:
        """End a job that waits, with its state if it has run."""
        self.job.fail(error, self.job.state if self.served else None)


class Schedule:
    """Jobs in slots and jobs that wait for one.

    A slot that is free goes to the caller who has the fewest, and of those to the first who came.
    If none is free, a job that has run may be parked, state and all, in favour of

    - a caller who has at least two slots fewer,
    - a job that somebody watches and that has never run,
    - a job that is due before it, of the same caller or of one who has fewer slots. So who gave way
      to one that had never run is back once that has shown something, and answers end in the order
      in which they came, but for long ones,
    - any job, once it has had its slot for `slice_s`. Only then it loses its turn as well.

    Of those that may, the one that is due last gives way; for the second and the third reason only
    one that is past its own first output, and for the last the one that has had its slot longest.
    """

    def __init__(self, width: int, slice_s: float) -> None:
        self.slots: dict[int, Ticket] = {}
        self.waiting: list[Ticket] = []
        self.steps = 0  # that whoever had a slot all along has done
        self._width = width
        self._slice_s = slice_s
        self._turns = itertools.count()

    def add(self, jobs: Iterable[Job], terms: Terms) -> None:
        """Let jobs wait, and those of them who have left no more: the engine may be stuck."""
        self.waiting = _present(self.waiting)
        for job in jobs:
            turn, due = next(self._turns), self.steps + job.steps_expected()
            self.waiting.append(Ticket(job, terms.caller, terms.deadline_s, turn, due))

    def next(self, now_s: float) -> tuple[int, Ticket] | None:
        """The next to be placed, and where; somebody in that slot has to be parked first."""
        able = [ticket for ticket in self.waiting if not ticket.job.paused]
        if not able:
            return None
        held = Counter(ticket.caller for ticket in self.slots.values())

        def turn(ticket: Ticket) -> tuple[int, int]:
            return held[ticket.caller], ticket.turn

        if len(self.slots) < self._width:
            return next(s for s in range(self._width) if s not in self.slots), min(able, key=turn)
        ran = {slot: ticket for slot, ticket in self.slots.items() if ticket.ran}
        if not ran:
            return None
        order = sorted(able, key=turn)
        for slot, ticket in _claims(able, order, ran, held):
            if slot is not None:
                return slot, ticket
        longest = min(ran, key=lambda slot: ran[slot].placed_s)
        if now_s - ran[longest].placed_s < self._slice_s:
            return None
        ran[longest].turn = next(self._turns)
        ran[longest].due = max(ticket.due for ticket in (ran[longest], *able))
        return longest, order[0]

    def place(self, slot: int, ticket: Ticket, now_s: float) -> None:
        """Give a slot that is free to one that waits."""
        self.waiting.remove(ticket)
        ticket.placed_s, ticket.ran = now_s, False
        self.slots[slot] = ticket

    def overload(
        self, caller: str, count: int, steps: int, size: int, step_s: float, most_s: float
    ) -> Overloaded | None:
        """Why so many jobs of a caller, the first of so many steps, had better come later: no room
        in a queue of `size`, or more than `most_s` until their turn, at `step_s` a step."""
        if not self.has_room(caller, count, size):
            return Overloaded(f"the queue is full ({size} requests may wait)")
        wait_s = self.work_before(caller, steps) * step_s
        if wait_s <= most_s:
            return None
        error = Overloaded(f"others would hold it up for {wait_s:.1f} s; at most {most_s:.1f}")
        # It is told in whole seconds: what is all over within one need not be looked at further.
        waiting = sum(ticket.job.steps_expected() for ticket in self.waiting)
        if (self._work_to_free() + waiting) * step_s > 1:
            until_s = self.work_until(caller, steps, most_s / step_s) * step_s
            error.retry_after_s = max(1, math.ceil(until_s))
        return error

    def work_before(self, caller: str, steps: int) -> int:
        """Steps of those who wait that would run before another job of `caller` had done `steps`:
        of each caller as many jobs as this one has by then. Who will have a free slot at the next
        look at the queue is not waited for, no more than those in slots are."""
        waiting = _present(self.waiting)
        mine = [ticket.caller for ticket in waiting].count(caller)
        seen: defaultdict[str, int] = defaultdict(int)
        total = 0
        for ticket in waiting[self._free :]:
            other = ticket.caller
            if seen[other] <= mine and not ticket.job.paused:
                seen[other] += 1
                total += min(steps, ticket.job.steps_expected())
        return total

    def work_until(self, caller: str, steps: int, most: float) -> int:
        """Steps that will have run once `work_before` is no more than `most`, if nobody else comes.
        Callers take turns, and who has more jobs than are waited for is waited for as before when
        one of them gets a slot; the first does when that which is nearest to its end is over."""
        waiting, before = _present(self.waiting), 0
        mine = [ticket.caller for ticket in waiting].count(caller)
        queues: defaultdict[str, list[int]] = defaultdict(list)  # what each caller's jobs count for
        turns: list[tuple[int, list[int], int]] = []  # place in a queue, which, and steps
        for ticket in waiting[self._free :]:
            if not ticket.job.paused:
                queue, expected = queues[ticket.caller], ticket.job.steps_expected()
                number, counts = len(queue), expected if expected < steps else steps
                if number <= mine:
                    before += counts
                turns.append((number, queue, expected))
                queue.append(counts)
        turns.sort(key=itemgetter(0))
        ran = self._work_to_free()
        for number, queue, expected in turns:
            follows = mine <= number < len(queue) - 1
            before -= queue[number] - (queue[number + 1] if follows else 0)
            if before <= most:
                return ran
            ran += expected
        return ran

    def _work_to_free(self) -> int:
        """Steps that will have run once one of those who have a slot, or are about to, is through;
        0 if all have just ended."""
        placed = [*_present(self.slots.values()), *_present(self.waiting)[: self._free]]
        return self._width * min((ticket.job.steps_expected() for ticket in placed), default=0)

    @property
    def _free(self) -> int:
        """Slots that those who came first will take."""
        return self._width - len(_present(self.slots.values()))

    def has_room(self, caller: str, count: int, size: int) -> bool:
        """Whether so many more may wait in a queue of `size`, of which each caller has a share.
        Those that free slots take at once do not wait. Where nobody else is, any number may: a
        request of more than slots and queue hold would be told to come back for ever."""
        queue, free = _present(self.waiting), self._free
        if free == self._width and not queue:
            return True
        if len(queue) + count <= size + free:
            return True
        waiting = Counter(ticket.caller for ticket in queue)
        return waiting[caller] + count <= size // (len(waiting) + (caller not in waiting))


def _present(tickets: Iterable[Ticket]) -> list[Ticket]:
    """Without those who have left, whom the engine's next look at them ends. It may be ending jobs
    in slots while others ask, so they are listed first, at once."""
    return [ticket for ticket in list(tickets) if not ticket.job.cancelled]


def _claims(
    able: Sequence[Ticket], order: Sequence[Ticket], ran: Mapping[int, Ticket], held: Counter[str]
) -> Iterator[tuple[int | None, Ticket]]:
    """Of those who wait, `able` as they stand in the queue and `order` as they get free slots, who
    may have the slot of one that ran, and which: for the reasons that `Schedule` gives but for the
    last, one after the other."""

    def last(least: int, of: str | None = None, *, shown: bool = True) -> int | None:
        """Of the slots of callers who hold so many, or of one, that of the job due last."""
        some = [
            slot
            for slot, ticket in ran.items()
            if (held[ticket.caller] >= least or ticket.caller == of)
            and (ticket.job.started or not (shown and ticket.job.urgent))
        ]
        return max(some, key=lambda slot: ran[slot].due, default=None)

    yield last(held[order[0].caller] + 2, shown=False), order[0]
    new = [ticket for ticket in order if ticket.job.urgent and not ticket.served]
    if new:
        yield last(held[new[0].caller]), new[0]
    for caller, ticket in _due_first(able).items():
        slot = last(held[caller] + 1, caller)
        if slot is not None and ticket.due < ran[slot].due:
            yield slot, ticket


def _due_first(tickets: Iterable[Ticket]) -> dict[str, Ticket]:
    """Of each caller the one that is due first."""
    found: dict[str, Ticket] = {}
    for ticket in tickets:
        if ticket.caller not in found or ticket.due < found[ticket.caller].due:
            found[ticket.caller] = ticket
    return found
