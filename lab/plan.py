"""A task's recipe: what `training` reads, and what the comparison of norms may cost.

Beside the four tables of `training.recipe`, a task's `recipe.toml` has `[lab]` (`Budget`), and may
have `[cases.NAME]`: settings `"table.key" = value` laid over it, for a comparison each. For
`--quick`, `[quick]` is laid over every case and `[quick.NAME]` over one.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lab.experiment import Experiment, recipe_path
from training.config import Recipe
from training.recipe import build, recipe_of

# The rates are compared with a seed that is none of the results'.
SWEEP_SEED = 1000
# A sweep whose best rate is its highest or its lowest goes on to the next of these.
LADDER = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What every norm gets alike: short runs of `sweep_epochs` at each of `rates`, neighbours on
    the `LADDER`, and beyond them until the best is inside; then full runs of `seeds` seeds.
    `minutes`: what all of it takes on two cores, as a promise to the reader."""

    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2)
    sweep_epochs: float = 1.0
    seeds: int = 3
    minutes: float = 20.0

    def __post_init__(self) -> None:
        if strange := [rate for rate in self.rates if rate not in LADDER]:
            raise ValueError(f"lab.rates has {strange}; rates are of {list(LADDER)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A task's recipe and budget; `case` is the name of what is compared, "" where it is all."""

    case: str
    recipe: Recipe
    budget: Budget

    def sweep(self, norm: str, rate: float) -> Recipe:
        """The short run of a norm at a rate, its warm-up as much shorter as it is itself."""
        short = self._run(norm, rate, SWEEP_SEED, self.budget.sweep_epochs)
        share = short.training.epochs / self.recipe.training.epochs
        warmup = max(1, round(share * short.training.warmup_updates))
        return replace(short, training=replace(short.training, warmup_updates=warmup))

    def full(self, norm: str, rate: float, seed: int) -> Recipe:
        """The full run of a norm, at the rate that was best for it."""
        return self._run(norm, rate, seed, self.recipe.training.epochs)

    def _run(self, norm: str, rate: float, seed: int, epochs: float) -> Recipe:
        """No run stops early or by the clock: the number of updates is the same for every norm."""
        training = replace(
            self.recipe.training,
            learning_rate=rate,
            seed=seed,
            epochs=epochs,
            patience_epochs=round(epochs) + 1,
            time_limit_s=None,
        )
        return replace(self.recipe, model=replace(self.recipe.model, norm=norm), training=training)


def read_plans(experiment: Experiment[Any], *, quick: bool = False) -> list[Plan]:
    """The plans of a task, one for each case. Raises `ValueError` for what no recipe may say."""
    tables = tomllib.loads(recipe_path(experiment.name).read_text("utf-8"))
    cases = tables.pop("cases", {"": {}})
    hurry = tables.pop("quick", {})
    return [
        _plan(experiment, case, tables, settings | (_hurried(hurry, case) if quick else {}))
        for case, settings in cases.items()
    ]


def _hurried(hurry: Mapping[str, Any], case: str) -> dict[str, Any]:
    every = {name: value for name, value in hurry.items() if not isinstance(value, dict)}
    mine: dict[str, Any] = hurry.get(case, {})
    return every | mine


def _plan(
    experiment: Experiment[Any], case: str, tables: Mapping[str, Any], settings: Mapping[str, Any]
) -> Plan:
    laid: dict[str, Any] = {name: dict(table) for name, table in tables.items()}
    for place, value in settings.items():
        table, dot, key = place.partition(".")
        if not dot:
            raise ValueError(f"{experiment.name}: setting {place!r}; it must be a table.key")
        laid.setdefault(table, {})[key] = value
    costs = laid.pop("lab", {})
    if "rates" in costs:
        costs["rates"] = tuple(costs["rates"])
    budget = build(Budget, costs, "lab")
    recipe = recipe_of(laid, experiment.name, experiment.config, f"{experiment.name}/recipe.toml")
    return Plan(case=case, recipe=recipe, budget=budget)
