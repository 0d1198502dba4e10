"""That a step emits what it is given where it is forced to, and is deaf to it where it is not.

Golden vectors show one of both: a text's are all drawn, ink's all forced. A graph that never drew,
or that heard no prompt, would replay them as well. Shapes: R rows.
"""

from collections.abc import Callable

import numpy as np

from contract.golden import Arrays

# Two steps of all rows from the initial state: the states after them and their outputs, by name.
Run = Callable[[Arrays], Arrays]


def broken_forcing(first: Arrays, emitted: str, run: Run) -> str | None:
    """What a graph does that none may do, or None. `first` is of one step, `(1, R, ...)` by port,
    and `emitted` the state that holds what a step has emitted, `(R, ...)`."""
    given = first["forced"]
    other = np.where(given > 0, given - 1, given + 1)  # of a byte a byte, of a pen's lift a lift

    def after(force: tuple[bool, bool], *forced: np.ndarray) -> Arrays:
        steps = {name: np.concatenate([array, array]) for name, array in first.items()}
        steps["force"][:] = np.array(force)[:, None]
        return run(steps | {"forced": np.concatenate(forced).astype(given.dtype)})

    for last in given, other:
        if (after((False, True), given, last)[emitted] != last[0]).any():
            return f"{emitted} is not what the step was forced to emit"
    for force, here, there in (
        ((False, True), (given, given), (other, given)),
        ((True, False), (given, given), (given, other)),
    ):
        once, again = after(force, *here), after(force, *there)
        if name := next((name for name in once if (once[name] != again[name]).any()), None):
            return f"{name} depends on what a step is given that is not forced to emit it"
    return None
