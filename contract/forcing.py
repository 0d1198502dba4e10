"""That a step emits what it is given where it is forced to, and is deaf to it where it is not.

Golden vectors show one of both: those of text are all drawn, those of ink all forced. A graph that
hears no prompt, or never draws, replays them as well. Shapes: T steps, R rows.
"""

from collections.abc import Sequence

import numpy as np

from contract.golden import Arrays

# A device may add up in another order the next time; what a graph reads moves it by far more.
_NEAR = 1e-3
# Two runs of `forcing_runs` that differ in what a step is given which draws, and in nothing else.
_ALIKE = ((0, 2), (5, 6))


def forcing_runs(steps: Arrays) -> list[Arrays]:
    """What to run of a graph, each from the initial state: the first of golden steps `(T, R, ...)`
    by port, once or twice, forced or not."""
    first = {name: array[:1] for name, array in steps.items()}
    given = first["forced"]
    other = np.where(given > 0, given - 1, given + 1).astype(given.dtype)  # of a byte, a byte

    def run(force: tuple[bool, ...], *forced: np.ndarray) -> Arrays:
        these = {name: np.concatenate([array] * len(force)) for name, array in first.items()}
        these["force"][:] = np.array(force)[:, None]
        return these | {"forced": np.concatenate(forced)}

    return [
        run((False, True), given, given),
        run((False, True), given, other),
        run((False, True), other, given),
        run((True,), given),
        run((True,), other),
        run((True, False), given, given),
        run((True, False), given, other),
    ]


def broken_forcing(runs: Sequence[Arrays], found: Sequence[Arrays], emitted: str) -> str | None:
    """What a graph does that none may, or None. `found` are the states after each of the runs and
    its outputs, by name; `emitted` is the state `(R, ...)` that holds what was emitted last."""
    for run, after in zip(runs, found, strict=True):
        if run["force"][-1].all() and (after[emitted] != run["forced"][-1]).any():
            return f"{emitted} is not what a step was forced to emit"
    for one, other in _ALIKE:
        for name, array in found[one].items():
            if not np.allclose(array, found[other][name], rtol=_NEAR, atol=_NEAR):
                return f"{name} depends on what a step was given that was to draw"
    return None
