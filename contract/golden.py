"""Golden vectors: inputs of the graphs and what training computed for them, written, read, judged.

Export draws them from the model itself; whoever runs the graphs replays them and asks `judge`. They
are of any kind of model: tensors go by the names of the graph's ports.
Shapes: T steps, R rows.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save_file

from contract.manifest import as_json

Arrays = dict[str, NDArray[Any]]
_FACTS = "evenkeel"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a replay found; `max_error` is of the output training computes, against float64."""

    ok: bool
    max_error: float
    bound: float
    training_error: float
    steps: int
    detail: str

    def describe(self) -> dict[str, Any]:
        """As JSON."""
        return as_json(asdict(self))


@dataclass(frozen=True, slots=True)
class Golden:
    """What is run, and what must come out.

    steps           per-step inputs `(T, R, ...)` by port
    rows            row inputs `(R, ...)` by port, those of the options that leave symbols out too
    filtered        `(R,)` which rows ask for symbols to be left out
    truth           outputs `(T, R, ...)` in float64; the first is what training computes
    bounds          by output of `truth`, how far a replay may be off
    exact           outputs `(T, R, ...)` that must be the very same
    training_error  how far float32 training itself was off in the first output
    """

    steps: Arrays
    rows: Arrays
    filtered: NDArray[np.bool_]
    truth: Arrays
    bounds: dict[str, float]
    exact: Arrays
    training_error: float

    @property
    def plain_rows(self) -> list[int]:
        """The rows that the graph without the options can run as well."""
        return np.flatnonzero(~self.filtered).tolist()

    @property
    def all_rows(self) -> list[int]:
        """Every row."""
        return list(range(len(self.filtered)))

    def step_inputs(self, row: int) -> Arrays:
        """The per-step inputs `(T, ...)` of one row."""
        return {name: array[:, row] for name, array in self.steps.items()}

    def row_inputs(self, row: int) -> Arrays:
        """The row inputs of one row."""
        return {name: array[row] for name, array in self.rows.items()}

    def save(self, path: Path) -> None:
        """Write one safetensors file, the bounds in its header."""
        tensors = {"filtered": self.filtered}
        for group in ("steps", "rows", "truth", "exact"):
            named: Arrays = getattr(self, group)
            tensors |= {f"{group}.{n}": np.ascontiguousarray(a) for n, a in named.items()}
        # One entry: several would stand in another order every time.
        facts = {"bounds": self.bounds, "training_error": self.training_error}
        save_file(tensors, path, {_FACTS: json.dumps(facts)})

    @classmethod
    def load(cls, path: Path) -> "Golden":
        """What `save` wrote. Raises `ValueError` for anything else or a bound that is none."""
        try:
            return cls.parse(path.read_bytes(), path.name)
        except OSError as error:
            raise ValueError(f"{path.name}: {error}") from error

    @classmethod
    def parse(cls, content: bytes, name: str) -> "Golden":
        """The same from the bytes of the file of that name, which may change meanwhile: one that
        is cut short while it is mapped would end the process. Raises `ValueError` as `load`."""
        try:
            tensors = read_tensors(content)
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            facts = json.loads(header.get("__metadata__", {})[_FACTS])
            truth, bounds = _group(tensors, "truth"), facts["bounds"]
            for unbound in truth.keys() - bounds.keys():
                raise KeyError(f"the bound of {unbound}")
            golden = cls(
                _group(tensors, "steps"),
                _group(tensors, "rows"),
                tensors["filtered"],
                {name: truth[name] for name in bounds},  # in order: safetensors has its own
                {name: float(bound) for name, bound in bounds.items()},
                _group(tensors, "exact"),
                float(facts["training_error"]),
            )
            golden._check()
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{name} says nothing of {error}") from error
        except (ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"{name}: {error}") from error
        return golden

    def _check(self) -> None:
        if not self.steps or not self.truth:
            raise ValueError("golden vectors have no steps or no outputs")
        for name, bound in self.bounds.items():
            if not 0 < bound < math.inf:
                raise ValueError(f"the bound of {name} is {bound}; it must be finite and above 0")
        if not 0 <= self.training_error < math.inf:
            raise ValueError(f"the error of training is {self.training_error}; it must be finite")
        for name, array in self.truth.items():
            if array.dtype.kind != "f" or not (np.abs(array) <= np.finfo(np.float32).max).all():
                raise ValueError(f"{name} is not what training could have computed")
        steps, rows = next(iter(self.truth.values())).shape[:2]
        timed = (self.steps, self.truth, self.exact)
        shapes = {array.shape[:2] for group in timed for array in group.values()}
        counts = {array.shape[:1] for array in (self.filtered, *self.rows.values())}
        if self.filtered.dtype != bool or self.filtered.ndim != 1:
            raise ValueError("golden vectors do not say which rows ask for symbols to be left out")
        if shapes != {(steps, rows)} or counts != {(rows,)} or not steps or not self.plain_rows:
            raise ValueError(f"golden vectors are not all of {steps} steps of {rows} rows")

    def judge(self, outputs: Arrays, rows: Sequence[int]) -> Verdict:
        """Compare the replayed outputs `(T, len(rows), ...)` of these rows."""
        chosen = list(rows)
        errors: dict[str, NDArray[np.float64]] = {}
        broken = None
        for name, truth in self.truth.items():
            distance = np.abs(outputs[name].astype(np.float64) - truth[:, chosen])
            errors[name] = distance.reshape(len(distance), -1).max(1)
            outside = ~(errors[name] <= self.bounds[name])  # NaN is outside too
            if broken is None and outside.any():
                step = int(outside.argmax())
                broken = (
                    f"{name}: outside the bound at step {step}: "
                    f"{errors[name][step]:.3g} > {self.bounds[name]:.3g}"
                )
        for name, exact in self.exact.items():
            different = (outputs[name] != exact[:, chosen]).reshape(len(exact), -1).any(1)
            if broken is None and different.any():
                step = int(different.argmax())
                broken = f"{name} differs from the golden one at step {step}"
        first = next(iter(self.truth))
        return Verdict(
            ok=broken is None,
            max_error=float(errors[first].max()),
            bound=self.bounds[first],
            training_error=self.training_error,
            steps=len(errors[first]) * len(chosen),
            detail=broken or "everything golden drawn again, every output within its bound",
        )


def halves(steps: Arrays) -> list[Arrays]:
    """Per-step inputs `(T, ...)` for a replay in two runs; a single step is one.

    What a run leaves behind, and what a graph does but once a run, only the next one shows: the
    first begins with a state of zeros.
    """
    total = len(next(iter(steps.values())))
    middle = total - total // 2
    parts = (slice(middle), slice(middle, None))[:total]
    return [{name: array[part] for name, array in steps.items()} for part in parts]


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Several replays as one: the first that failed speaks, the largest error counts."""
    speaks = next((v for v in verdicts if not v.ok), verdicts[0])
    errors = [v.max_error for v in verdicts]
    return replace(
        speaks,
        max_error=math.nan if any(map(math.isnan, errors)) else max(errors),
        steps=sum(v.steps for v in verdicts),
    )


def read_tensors(content: bytes) -> Arrays:
    """All tensors of a safetensors file. Raises `ValueError` for one that is none, and for types
    that numpy has not."""
    try:
        tensors: Arrays = load(content)
    except KeyError as error:
        raise ValueError(f"it has tensors of type {error.args[0]}") from error
    except SafetensorError as error:
        raise ValueError(error) from error
    return tensors


def _group(tensors: Arrays, group: str) -> Arrays:
    start = f"{group}."
    return {n.removeprefix(start): a for n, a in tensors.items() if n.startswith(start)}
