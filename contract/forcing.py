"""That a step emits what it is given where it is forced to, and is deaf to it where it is not.

Golden vectors show one of both: those of text are all drawn, those of ink all forced. A graph that
hears no prompt, or never draws, replays them as well. Shapes: T steps, R rows.
"""

from collections.abc import Callable

import numpy as np

from contract.golden import Arrays

# A device may add up in another order the next time; what a graph reads moves it by far more.
_NEAR = 1e-3
# Runs steps of all rows from the initial state: the states after them and the outputs, by name.
Run = Callable[[Arrays], Arrays]


def broken_forcing(steps: Arrays, emitted: str, run: Run) -> str | None:
    """What a graph does that none may, or None. `steps` are golden ones `(T, R, ...)` by port, and
    `emitted` is the state `(R, ...)` that holds what was emitted last."""
    first = {name: array[:1] for name, array in steps.items()}
    given = first["forced"]
    other = np.where(given > 0, given - 1, given + 1).astype(given.dtype)  # of a byte, a byte

    def after(force: tuple[bool, ...], *forced: np.ndarray) -> Arrays:
        these = {name: np.concatenate([array] * len(force)) for name, array in first.items()}
        these["force"][:] = np.array(force)[:, None]
        return run(these | {"forced": np.concatenate(forced)})

    drawn_first = after((False, True), given, given)
    for found, last in (
        (drawn_first, given),
        (after((False, True), given, other), other),
        (after((True,), given), given),
        (after((True,), other), other),
    ):
        if (found[emitted] != last[0]).any():
            return f"{emitted} is not what a step was forced to emit"
    for once, again in (
        (drawn_first, after((False, True), other, given)),
        (after((True, False), given, given), after((True, False), given, other)),
    ):
        for name, array in once.items():
            if not np.allclose(array, again[name], rtol=_NEAR, atol=_NEAR):
                return f"{name} depends on what a step was given that was to draw"
    return None
