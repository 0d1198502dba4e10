"""A model's runner with few threads and the one with many, over the same slots."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from contract.golden import Arrays
from service.artifact import Artifact
from service.engine.core_budget import CoreShare
from service.engine.jobs import length
from service.engine.preference import Preference, Ran
from service.engine.runners import Runner, ScanRunner, make_runner
from service.engine.runtime import Runtime


class SharingRunner:
    """Runs with few threads while the cores are oversubscribed, otherwise with as many as are
    preferred. On the CPU the bits are the same whatever the threads."""

    divides = True

    def __init__(
        self, few: ScanRunner, many: ScanRunner, share: CoreShare, preference: Preference | None
    ) -> None:
        """Without a preference `many` are always preferred."""
        few.share(many)
        self._few, self._many = few, many
        self._share, self._preference = share, preference
        self.width = many.width
        self.parts: Sequence[Runner] = (many, few)
        self.turn, self.load, self.read = many.turn, many.load, many.read

    @property
    def threads(self) -> int:
        """As many as are preferred."""
        many = self._preference is None or self._preference.many
        return (self._many if many else self._few).threads

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        if self._share.oversubscribed:
            return self._few.run(slots, steps, row, filtered=filtered)
        if self._preference is None:
            return self._many.run(slots, steps, row, filtered=filtered)
        load = len(slots), length(steps), filtered
        began_s = time.perf_counter()
        many = self._preference.choose(load, began_s)
        runner = self._many if many else self._few
        outputs = runner.run(slots, steps, row, filtered=filtered)
        ended_s = time.perf_counter()
        self._preference.follow(Ran(load, ended_s - began_s, ended_s), many=many)
        return outputs

    def give_up(self) -> None:
        for part in self.parts:
            part.give_up()


def sharing(
    artifact: Artifact, runtime: Runtime, share: CoreShare, made: Mapping[int, Runner] | None = None
) -> Runner:
    """The runner of a model: one of two numbers of threads if another may be faster, or if it has
    to make do with fewer while others are at work. Runners that are `made` already, by their
    threads, are not made again."""
    made = made or {}

    def runner(threads: int) -> Runner:
        return made.get(threads) or make_runner(artifact, replace(runtime, threads=threads))

    other = runtime.other_threads or min(share.fewer, runtime.threads)
    if runtime.runner == "slots" or other == runtime.threads:
        return runner(runtime.threads)
    few, many = map(runner, sorted((runtime.threads, other)))
    assert isinstance(few, ScanRunner)
    assert isinstance(many, ScanRunner)
    preference = None
    if runtime.other_threads:
        preference = Preference(many=runtime.threads > other, now_s=time.perf_counter())
    return SharingRunner(few, many, share, preference)
