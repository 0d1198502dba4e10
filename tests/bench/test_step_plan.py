"""Which models are measured step by step, with how many threads, and how a line is timed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import eight_bits, line, step
from bench.goal import Goal
from bench.step import Plan, StepRow
from service.engine.runtime import Runtime


def test_every_model_is_compared_with_every_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those of which there are variants beside the peers in eight bits; and goals are of all."""
    compared = list[tuple[Any, ...]]()

    def artifact(folder: Path, units: int = 0) -> Any:
        return SimpleNamespace(name=folder.name)

    def compare_sides(
        artifact: Any, threads: int, rounds: int, sides: tuple[str, ...], variants: Any
    ) -> list[StepRow]:
        compared.append((artifact.name, threads, rounds, sides, tuple(variants)))
        ratios = 4.0, 1.0, 1.0, 1.5, None
        return [StepRow(artifact.name, threads, s, 1.0, 1.0, *ratios, rounds, "") for s in sides]

    (tmp_path / "shakespeare").mkdir()
    monkeypatch.setattr(step, "compare_sides", compare_sides)
    monkeypatch.setattr(step, "random_artifact", artifact)
    monkeypatch.setattr(step, "load_artifact", artifact)
    monkeypatch.setattr(step, "ARTIFACTS", tmp_path)
    monkeypatch.setattr(step, "_variants", lambda *_: {"folded": None})
    monkeypatch.setattr(step, "absent", lambda _: {})
    monkeypatch.setattr(step, "usable_cores", lambda: 2)
    monkeypatch.setattr(line, "ARTIFACT", tmp_path)
    monkeypatch.setattr(line, "measure", lambda threads: threads)
    plain = ("served", "eager")
    found = list(step.measure(True, Plan((512, 64), plain, rounds=3, varied=("lstm-512",))))
    more = (*plain, *eight_bits.BUILDERS)
    assert compared == [
        *(("lstm-512", threads, 3, more, ("folded",)) for threads in (1, 2)),
        *(("lstm-64", threads, 3, plain, ()) for threads in (1, 2)),
        *(("shakespeare", threads, 3, plain, ()) for threads in (1, 2)),
    ]
    tables = [each for each in found if not isinstance(each, Goal)]
    assert tables[-2:] == [("line", 1), ("line", 2)]
    assert len(tables) == 2 + 2 * len(more) + 4 * len(plain)
    met = {goal.name: goal.met for goal in found if isinstance(goal, Goal)}
    assert met["step, 512 units, 2 threads, against PyTorch eager"] is True
    assert met["step, 512 units, 1 thread, floor"] is False  # 1.5 of 1.35


@pytest.mark.parametrize(("cores", "counts"), [(1, [1]), (5, [1, 5])])
def test_there_is_one_thread_and_as_many_as_cores(
    cores: int, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "usable_cores", lambda: cores)
    assert step.thread_counts() == counts


def test_a_line_is_timed_from_its_job_on_with_the_threads_that_are_told(
    inks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, threads, filtered = [0.0], list[int](), set[bool]()
    job, runner = line.InkLine, line.ScanRunner

    def passes(seconds: float, then: Any) -> Any:
        now_s[0] += seconds
        return then

    class Runner(runner):
        def load(self, *given: Any) -> None:
            passes(10.0, super().load(*given))

        def run(self, *given: Any, filtered: bool) -> Any:
            seen.add(filtered)
            return super().run(*given, filtered=filtered)

    def runtime(provider: Any, kind: Any, count: int, slots: int) -> Runtime:
        threads.append(count)
        return Runtime(provider, kind, 1, slots)

    seen = filtered
    monkeypatch.setattr(line, "ARTIFACT", inks / "scrawl")
    monkeypatch.setattr(line, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    monkeypatch.setattr(line, "InkLine", lambda *given, **more: passes(1.0, job(*given, **more)))
    monkeypatch.setattr(line, "ScanRunner", Runner)
    monkeypatch.setattr(line, "Runtime", runtime)
    told = line.measure(3, repeats=2)
    assert (told.ms_median, told.threads, threads, seen) == (11_000.0, 3, [3], {False})


def test_over_the_floor_is_how_many_times_as_long_a_step_takes() -> None:
    us = {"served": np.array([10.0, 12.0, 14.0]), "floor": np.array([5.0, 5.0, 5.0])}
    row = step._row("m", 1, "served", "", us)
    assert (row.over_floor_median, row.over_floor_p99) == (2.4, 2.8)
