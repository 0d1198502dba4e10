"""The networks of networks.mjs, a few sums each, and jobs of the service that are run with them."""

import base64
from typing import Any

import numpy as np

from contract.golden import Arrays
from service.engine.jobs import Generation

Run = dict[str, dict[str, str]]
_KINDS = {"forced": np.float32, "force": np.bool_, "text": np.int64, "length": np.int64}
LOGITS, MIXTURE = 256, 49


def unpacked(run: Run, **kinds: Any) -> dict[str, np.ndarray]:
    """The steps and the row of a run that the site asked for, flat."""
    return {
        name: np.frombuffer(base64.b64decode(told), (_KINDS | kinds).get(name, np.float32))
        for name, told in (run["steps"] | run["row"]).items()
    }


def text(state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
    """Adds up what it emitted, a byte a step."""
    count = len(steps["force"])
    drawn, logits = np.zeros(count, np.int64), np.zeros((count, LOGITS), np.float32)
    last, total = int(state["drawn"]), int(state["total"])
    for t in range(count):
        total = (31 * total + last + 7) % 1009
        logits[t] = total * np.arange(1, LOGITS + 1) * 7919 % 1000 / 100
        free = int(float(steps["uniform"][t]) * 1000 + total) % 256
        last = int(steps["forced"][t]) if steps["force"][t] else free
        drawn[t] = last
    after = {"drawn": np.array(last, np.int64), "total": np.array(total, np.int64)}
    return after, {"next": drawn, "logits": logits}


def ink(state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
    """Moves on by its noise, a quarter of a character a step; where it is to be very neat it never
    comes to an end."""
    count, n = len(steps["force"]), np.arange(MIXTURE)
    drawn, mixture = np.zeros((count, 3), np.float32), np.zeros((count, MIXTURE), np.float32)
    characters, ended = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    last, at = state["point"], float(state["kappa"][0])
    for t in range(count):
        mixture[t] = (n * n + 3 * n) % 11 - 5 + last[n % 3].astype(np.float64) / 4
        at += 0.25 if row["bias"] < 5 else 0
        uniform, normal = float(steps["uniform"][t]), float(steps["normal"][t][0])
        mine = [4 * uniform - 1, int(2 * normal) / (1 + float(row["bias"])), uniform > 0.75]
        last = np.array(steps["forced"][t] if steps["force"][t] else mine, np.float32)
        drawn[t], characters[t], ended[t] = last, int(at // 1), at >= int(row["length"])
    after = {"point": last, "kappa": np.array([at, at + 0.5], np.float32)}
    return after, {"drawn": drawn, "mixture": mixture, "character": characters, "ended": ended}


def write(job: Generation[Any], network: Any, runs: list[Run], **kinds: Any) -> None:
    """Run a job in the portions that the site asked for, and see that it asked for the same; those
    that it has run are taken from the list."""
    state, done = job.state, job.finished_at_once
    while not done:
        job.anchor(state)
        run = runs.pop(0)
        count = len(unpacked(run, **kinds)["force"])
        assert count <= job.steps_wanted()
        steps = job.inputs(count)
        same(run, state, steps, job.row, **kinds)
        state, outputs = network(state, steps, job.row)
        if not (done := job.accept(outputs)):
            job.publish()
    if runs and job.wants_state:
        before, again = job.replay()
        same(runs.pop(0), before, again, job.row, **kinds)
        state, _ = network(before, again, job.row)
    job.finish(state if job.wants_state else None)


def same(run: Run, state: Arrays, steps: Arrays, row: Arrays, **kinds: Any) -> None:
    """The site asked for what the service would ask for."""
    found = unpacked(run, **kinds)
    assert found.keys() <= (steps | row).keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, np.ravel((steps | row)[name]), name)
    for name, told in run["state"].items():
        assert base64.b64decode(told) == state[name].tobytes(), name
