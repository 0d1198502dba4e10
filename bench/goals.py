"""The goals of speed as data: what is compared, how far apart it may be, and how to find it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from bench import pairs
from bench.pairs import Pair, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The measured value is to be at least, or at most, `factor` times its reference `plus` so
    much. Where a value is a ratio already, or has a bound of its own, the reference is 1."""

    name: str
    section: str
    compared: str
    direction: Literal["at least", "at most"]
    factor: float
    plus: float = 0.0
    unit: str = ""
    find: Callable[[Tables], Pair | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A goal and what came of it; None where it was not measured. `ratio` is the value over its
    reference, and None where that is 0."""

    name: str
    compared: str
    direction: str
    unit: str
    met: bool | None
    value: float | None = None
    bound: float | None = None
    ratio: float | None = None

    def line(self) -> str:
        """One line for people."""
        if self.value is None:
            return f"{'-':7}{self.name}: not measured in this run"
        told = "met" if self.met else "MISSED"
        ratio = "" if self.ratio in (None, self.value) else f"; ratio {self.ratio:.3g}"
        value, bound = (_told(number or 0.0) for number in (self.value, self.bound))
        return (
            f"{told:7}{self.name}: {value} {self.unit}, {self.direction} {bound}{ratio} "
            f"({self.compared})"
        )


def _told(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def judge(goal: Goal, tables: Tables) -> Outcome:
    """What came of a goal."""
    told = (goal.name, goal.compared, goal.direction, goal.unit)
    found = goal.find(tables)
    if found is None:
        return Outcome(*told, met=None)
    value, reference = found
    bound = goal.factor * reference + goal.plus
    # Twice nothing is nothing, and nothing does not do.
    enough = value >= bound and value > 0 if goal.direction == "at least" else value <= bound
    ratio = round(value / reference, 4) if reference else None
    return Outcome(*told, enough, round(value, 4), round(bound, 4), ratio)


def outcomes(section: str, tables: Tables) -> list[Outcome]:
    """Of the goals of one section, in the order of the list."""
    return [judge(goal, tables) for goal in GOALS if goal.section == section]


def _all() -> Iterator[Goal]:
    """Steps, then HTTP, then the rest."""
    for side, name, factor in (
        ("eager", "PyTorch eager", 4.0),
        ("compile", "torch.compile", 4.0),
        ("openvino", "OpenVINO", 2.0),
    ):
        yield Goal(
            name=f"step, 512 units, 2 threads, against {name}", section="step", unit="times",
            compared=f"time of {name} over ours", direction="at least", factor=factor,
            find=pairs.step("ratio_median", side, 512, 2),
        )  # fmt: skip
    for threads, factor in ((2, 1.6), (1, 1.35)):
        for side, suffix in (("served", ""), ("folded", ", folded")):
            yield Goal(
                name=f"step, 512 units, {threads} thread{'s' * (threads > 1)}, floor{suffix}",
                section="step", unit="times", direction="at most", factor=factor,
                compared="our time over that of reading the weights of the unfolded model once",
                find=pairs.step("over_floor_median", side, 512, threads),
            )  # fmt: skip
    yield Goal(
        name="step, 1024 units, quantized against exact", section="step", unit="times",
        compared="time of the exact artifact over the quantized, the worse number of threads",
        direction="at least", factor=1.6,
        find=pairs.step("ratio_median", "quantized", 1024, None, faster=True),
    )  # fmt: skip
    yield Goal(
        name="completion of 200 bytes, one client, p50", section="http", unit="ms",
        compared="1.25 times the time in process, and 1 ms", direction="at most",
        factor=1.25, plus=1.0, find=pairs.completion,
    )  # fmt: skip
    yield Goal(
        name="WebSocket step, p50", section="websocket", unit="ms",
        compared="the time in process, and 0.25 ms", direction="at most",
        factor=1.0, plus=0.25, find=pairs.online,
    )  # fmt: skip
    yield Goal(
        name="32 clients, throughput against the plain peer", section="http", unit="bytes/s",
        compared="5 times FastAPI and a PyTorch loop", direction="at least",
        factor=5.0, find=pairs.beside_plain,
    )  # fmt: skip
    yield Goal(
        name="32 clients, goodput against the best peer", section="http", unit="requests/s",
        compared="1.5 times the best of all peers, each in its better mode", direction="at least",
        factor=1.5, find=pairs.goodput,
    )  # fmt: skip
    yield Goal(
        name="32 clients, throughput against the session", section="http", unit="bytes/s",
        compared="0.8 times 32 rows in process", direction="at least",
        factor=0.8, find=pairs.of_the_session,
    )  # fmt: skip
    yield Goal(
        name="32 clients, streamed, first byte, p99", section="http", unit="ms",
        compared="3 times the p50", direction="at most", factor=3.0, find=pairs.first_byte,
    )  # fmt: skip
    yield Goal(
        name="training against torch.nn.LSTM", section="training", unit="times",
        compared="our characters per second over its, the worst size", direction="at least",
        factor=0.75, find=pairs.training,
    )  # fmt: skip
    yield Goal(
        name="start to ready, two models", section="memory", unit="s",
        compared="median of the starts", direction="at most", factor=2.0, find=pairs.start,
    )  # fmt: skip
    yield Goal(
        name="resident memory", section="memory", unit="MiB",
        compared="the process with the most models", direction="at most",
        factor=300.0, find=pairs.resident,
    )  # fmt: skip


GOALS: tuple[Goal, ...] = tuple(_all())
