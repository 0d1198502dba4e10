"""A comparison's jobs, one for every norm of every case, shared among processes."""

import multiprocessing
import os
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any

import torch
from tqdm import tqdm

from lab.compare import RUNS, Contender, Laboratory
from lab.experiment import Experiment, load
from lab.plan import Plan
from lab.shared import begin
from training.loading import end_at_ctrl_c, hear_ctrl_c
from training.machine import keep_freed_memory, terminated_as_interrupted, use_fast_float32


def carry_out(
    experiment: Experiment[Any],
    plans: Iterable[Plan],
    norms: Sequence[str],
    seeds: int | None,
    source: Path | None,
    runs: Path = RUNS,
    workers: int = 1,
) -> dict[str, tuple[Plan, list[Contender]]]:
    """Every case of a task with every norm; `seeds` of the recipe's budget where it is None.

    `workers` processes share the norms, one core each: networks as small as these gain little from
    a second one. What a run computes does not depend on them. Raises `ChildProcessError` where one
    of them is killed.
    """
    plans = list(plans)
    jobs = [
        (experiment.name, plan, norm, seeds or plan.budget.seeds, source, runs)
        for plan in plans
        for norm in norms
    ]
    if workers == 1:
        found = list(map(_compete, *zip(*jobs, strict=True)))
    else:
        # Not forked: PyTorch's threads do not survive that.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, initializer=begin) as pool:
            try:
                # Not by `map`: what that cancels at an interruption, the pool fails to end as well.
                asked = [pool.submit(_work, *job) for job in jobs]
                found = [job.result() for job in asked]
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):  # a signal may be for this one alone
                    for worker in multiprocessing.active_children():
                        worker.terminate()
                pool.shutdown(cancel_futures=True)
                if isinstance(error, BrokenProcessPool):  # as the system does where memory is short
                    raise ChildProcessError(
                        "a process of this comparison was killed; the same command goes on from "
                        "what was saved last"
                    ) from error
                raise
    each = iter(found)
    return {plan.case: (plan, [next(each) for _ in norms]) for plan in plans}


def _work(*job: Any) -> Contender:
    """`_compete` in a process of the pool, which ends when it is interrupted: the pool would give
    it the next job in its queue. There is something to save while it is at one."""
    # Each writes its own bars. The lock that they would share is the system's, and is told of as
    # leaked where a process ends at once.
    tqdm.set_lock(RLock())
    try:
        hear_ctrl_c()
        return _compete(*job)
    except KeyboardInterrupt:
        os._exit(130)
    finally:
        end_at_ctrl_c()


def _compete(
    task: str, plan: Plan, norm: str, seeds: int, source: Path | None, runs: Path
) -> Contender:
    torch.set_num_threads(1)
    use_fast_float32()
    keep_freed_memory()
    with terminated_as_interrupted():
        return _laboratory(task, plan, source, runs).compete(norm, seeds)


@lru_cache(maxsize=1)  # the jobs of a case follow each other, and reading data can take minutes
def _laboratory(task: str, plan: Plan, source: Path | None, runs: Path) -> Laboratory:
    return Laboratory(load(task), plan, source, runs)


def forget(experiment: Experiment[Any], runs: Path) -> None:
    """Remove all runs of a task, such as those of the last `--quick`; not their folder, by which
    others are kept out."""
    for case in (runs / experiment.name).glob("*"):
        shutil.rmtree(case, ignore_errors=True)
