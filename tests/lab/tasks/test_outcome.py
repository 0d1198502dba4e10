"""What came out of a comparison: medians, who was sooner, which rate is best, and who won."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from lab import curves
from lab.compare import Contender, Laboratory, Run, best_rate, beyond, budget_of
from lab.experiment import Metric
from lab.outcome import _case, _tests, median_curve, sooner, updates_to_reach, winner
from lab.plan import Budget, Plan
from tests.training.legible import LEAST_PX, smallest_letters_px
from training.config import DataConfig, Recipe
from training.figures import HALF_IN, WIDTH_IN

_LOSS = Metric(name="loss", label="loss")
_HITS = Metric(name="hits", label="hits", higher_is_better=True)
_RECIPE = Recipe(kind="any", data=DataConfig(source="any"), model=None)
_PLAN = Plan(case="", recipe=_RECIPE, budget=Budget())


def _run(losses: list[float], test: float = 0.0, name: str = "loss") -> Run:
    rows: list[dict[str, float]] = [{"update": i + 1, name: v} for i, v in enumerate(losses)]
    return Run({"name": "x", "sha256": "0"}, len(losses), 1.0, rows, {name: test})


def test_the_median_of_a_curve_counts_what_diverged_as_worst() -> None:
    curves = [[(1, 5.0), (2, math.nan)], [(1, 3.0), (2, 1.0)], [(1, 4.0), (2, 2.0)]]
    assert median_curve(curves, _LOSS) == [(1, 4.0), (2, 2.0)]
    assert median_curve(curves[:2], _LOSS)[1] == (2, math.inf)
    assert median_curve(curves[:1], _HITS)[1] == (2, -math.inf)


def test_the_best_of_a_run_is_of_its_validations_that_were_numbers() -> None:
    for diverged in (math.nan, math.inf, -math.inf):
        assert _run([diverged, 2.0, 3.0]).best(_LOSS) == 2.0
        assert _run([2.0, 3.0, diverged], name="hits").best(_HITS) == 3.0
        assert math.isnan(_run([diverged]).best(_LOSS))


def test_full_runs_are_at_the_rate_that_is_best_by_the_first_metric() -> None:
    """Whichever is best by the others, and each with a seed of its own."""
    ran = list[tuple[Any, str, bool]]()

    def sweeps(norm: str) -> dict[float, Run]:
        rows = {1e-3: (3.0, 9.0), 3e-3: (1.0, 1.0), 1e-2: (2.0, 5.0)}
        return {
            rate: Run({}, 1, 1.0, [{"update": 1, "loss": loss, "hits": hits}], {})
            for rate, (loss, hits) in rows.items()
        }

    def run(recipe: Any, name: str, *, keep: bool) -> Run:
        ran.append((recipe, name, keep))
        return _run([1.0])

    laboratory = object.__new__(Laboratory)
    laboratory.experiment = SimpleNamespace(metrics=(_LOSS, _HITS))  # type: ignore[assignment]
    laboratory.plan = SimpleNamespace(full=lambda *given: given)  # type: ignore[assignment]
    laboratory._sweep, laboratory.run = sweeps, run  # type: ignore[method-assign,assignment]
    found = laboratory.compete("layer", 2)
    assert (found.norm, found.rate, len(found.runs)) == ("layer", 3e-3, 2)
    assert ran == [(("layer", 3e-3, seed), f"layer-seed-{seed}", True) for seed in (0, 1)]


def test_the_first_update_as_good_counts_whichever_way_is_better() -> None:
    curve = [(10, 3.0), (20, 1.9), (30, 2.5), (40, 1.0)]
    assert updates_to_reach(curve, 2.0, _LOSS) == updates_to_reach(curve, 1.9, _LOSS) == 20
    assert updates_to_reach(curve, 3.0, _HITS) == 10
    assert updates_to_reach(curve, 0.5, _LOSS) is None


def test_how_soon_is_told_of_the_medians_and_of_each_seed() -> None:
    curves = {
        "layer": [[(1, 5.0), (2, 2.0), (4, 1.0)], [(1, 1.9), (2, 1.8), (4, 1.7)]],
        "none": [[(1, 9.0), (2, 4.0), (4, 2.0)], [(1, 9.0), (2, 3.0), (4, 1.0)]],
    }
    found = sooner(curves, "layer", _LOSS)
    assert found is not None
    # Medians: layer 3.45, 1.9, 1.35; none 9, 3.5, 1.5.
    assert (found["updates"], found["ratio"]) == (4, 1.0)
    assert found["ratio_of_seeds"] == [0.5, None]
    assert sooner(curves, "none", _LOSS) == {
        "updates": 4,
        "ratio": 1.0,
        "ratio_of_seeds": [1.0, 1.0],
    }
    assert sooner({"layer": curves["layer"]}, "layer", _LOSS) is None
    # The best of the baseline is not its last.
    worse = {"layer": [[(1, 9.0), (3, 2.0)]], "none": [[(6, 2.0), (8, 5.0)]]}
    assert sooner(worse, "layer", _LOSS) == {"updates": 3, "ratio": 0.5, "ratio_of_seeds": [0.5]}


def test_a_baseline_that_diverged_sets_no_goal_to_be_missed() -> None:
    lost, able = [(1, math.nan), (2, math.nan)], [(1, 3.0), (2, 2.0)]
    mine = [[(1, 2.0), (2, 1.0)]] * 3
    assert sooner({"layer": mine, "none": [lost, lost, lost]}, "layer", _LOSS) is None
    found = sooner({"layer": mine, "none": [able, lost, able]}, "layer", _LOSS)
    assert found == {"updates": 1, "ratio": 0.5, "ratio_of_seeds": [0.5, 0.5]}


def test_the_best_rate_is_the_one_that_got_furthest_and_did_not_diverge() -> None:
    sweep = {1e-3: _run([3.0, 2.0]), 1e-2: _run([1.0, 1.5]), 1e-1: _run([math.nan, math.nan])}
    assert best_rate(sweep, _LOSS) == 1e-2
    hits = {1e-3: _run([0.1], name="hits"), 1e-2: _run([0.3], name="hits")}
    assert best_rate(hits, _HITS) == 1e-2
    assert best_rate({1e-1: sweep[1e-1]}, _LOSS) == 1e-1
    # By the best of each, not its last; of two as good the lower.
    assert best_rate({1e-3: _run([2.0]), 1e-2: _run([1.0, 9.0])}, _LOSS) == 1e-2
    assert best_rate({1e-3: _run([1.0]), 1e-2: _run([1.0])}, _LOSS) == 1e-3


def test_a_sweep_goes_on_past_the_end_that_was_best_and_no_further() -> None:
    def after(*losses: float, rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2)) -> list[float]:
        return beyond({rate: _run([loss]) for rate, loss in zip(rates, losses, strict=True)}, _LOSS)

    assert after(3.0, 2.0, 1.0) == [3e-2]
    assert after(1.0, 2.0, 3.0) == [3e-4]
    assert after(2.0, 1.0, 3.0) == []
    assert after(2.0, 1.0, math.nan) == []
    assert after(math.nan, math.nan, math.nan) == [3e-4]
    assert after(2.0, 1.0, rates=(3e-1, 1.0)) == []
    assert after(1.0, 2.0, rates=(1e-5, 3e-5)) == []
    assert after(1.0, rates=(1e-3,)) == []
    hits = {rate: _run([rate], name="hits") for rate in (1e-3, 3e-3)}
    assert beyond(hits, _HITS) == [1e-2]


def _contender(norm: str, tests: list[float]) -> Contender:
    return Contender(norm, {}, 1e-2, [_run([1.0], test) for test in tests])


def test_who_won_is_told_by_the_median_and_a_tie_is_told() -> None:
    layer, none = _contender("layer", [1.0, 2.0, 9.0]), _contender("none", [1.9, 2.1, 2.2])
    lost = _contender("batch", [math.nan] * 3)
    assert winner([layer, none, lost], _LOSS) == "layer"
    assert winner([layer, _contender("weight", [2.0])], _LOSS) == "layer = weight"
    assert winner([lost], _LOSS) is None
    hits = [Contender(norm, {}, 1e-2, [_run([], test, "hits")]) for norm, test in
            (("layer", 9.0), ("none", 2.0))]  # fmt: skip
    assert winner(hits, _HITS) == "layer"


def test_the_range_of_a_test_is_of_the_least_and_the_most_that_is_a_number() -> None:
    found = _tests(_contender("layer", [math.nan, 2.0, 9.0, 1.0, 4.0]), [_LOSS])["loss"]
    assert found["range"] == [1.0, 9.0]
    assert found["seeds"] == [None, 2.0, 9.0, 1.0, 4.0]


def test_a_seed_that_diverged_counts_as_worst_in_the_median_of_a_test() -> None:
    """As in that of a curve: the best of three is not what to expect where two are lost."""
    able, lost = [math.nan, 2.0, 9.0, 1.0, 4.0], [math.nan, 1.0, math.nan]
    for metric, middle in ((_LOSS, 4.0), (_HITS, 2.0)):
        runs = [[_run([], test, metric.name) for test in tests] for tests in (able, lost)]
        some, most = (Contender("none", {}, 1e-2, run) for run in runs)
        assert _tests(some, [metric])[metric.name]["median"] == middle
        assert _tests(most, [metric])[metric.name]["median"] is None
        steady = Contender("layer", {}, 1e-2, [_run([], 1.5, metric.name)] * 3)
        assert winner([most, steady], metric) == "layer"


def test_the_cost_of_sweeps_and_of_full_runs_are_told_apart() -> None:
    def runs(*seconds: float) -> list[Run]:
        return [Run({}, round(s), s, [], {}) for s in seconds]

    short = dict(zip((1e-3, 1e-2), runs(1, 2), strict=True))
    contenders = [Contender(norm, short, 1e-2, runs(10, 20)) for norm in ("layer", "none")]
    found = budget_of(_PLAN, contenders)
    assert (found["sweep_seconds"], found["full_seconds"]) == (6, 60)
    assert (found["sweep_updates_each"], found["full_updates_each"]) == (1, 10)


def _panel(saved: list[Figure], *, higher: bool, norms: dict[str, Any]) -> Any:
    """The one panel that is drawn of what was found of norms."""
    metric = {"name": "hits", "label": "hits, %", "higher_is_better": higher, "plotted": True}
    content = {"title": "a line", "metrics": [metric], "cases": {"plain": {"norms": norms}}}
    curves.plot(content, Path("none.png"))
    return saved[0].axes[0]


def test_a_panel_shows_medians_and_ranges_of_seeds_with_their_unit(saved: list[Figure]) -> None:
    assert np.isnan(curves.numbers([[1.0, None]])).tolist() == [[False, True]]
    seeds = [[1.0, 2.0], [3.0, 4.0], [8.0, 9.0]]
    found = {"updates": [10, 20], "curves": {"hits": seeds}}
    axes = _panel(saved, higher=True, norms={"layer": found, "one": found, "two": found})
    assert axes.get_ylabel() == "hits, %"
    assert axes.get_title("left") == "plain"
    lines = axes.get_lines()
    assert [line.get_label() for line in lines] == ["layer", "one", "two"]
    assert len({line.get_color() for line in lines}) == 3
    assert len({line.get_marker() for line in lines}) == 3  # in grey print
    assert lines[0].get_ydata().tolist() == [3.0, 4.0]
    assert saved[0].get_figwidth() == HALF_IN
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (1.0, 9.0)


def test_a_picture_has_a_panel_for_each_case_and_metric_and_says_which(saved: list[Figure]) -> None:
    """Of one metric two beside one another, of many a row for each case."""
    names = ("hits", "rank", "nats")
    found = {"updates": [10, 20, 30], "curves": {name: [[1.0, 2.0, 3.0]] for name in names}}
    of_case = {case: found | {"curves": {name: [[1.0, 2.0, number]] for name in names}}
               for number, case in enumerate(("en", "de", "fr"), 3)}  # fmt: skip
    cases = {case: {"norms": {"layer": one, "none": one}} for case, one in of_case.items()}
    metrics = [
        {"name": name, "label": f"{name}, %", "higher_is_better": True, "plotted": True}
        for name in names
    ]
    content = {"title": "a line", "cases": cases}
    hidden = metrics[1] | {"plotted": False}
    curves.plot(content | {"metrics": [metrics[0], hidden]}, Path("one.png"))
    curves.plot(content | {"metrics": metrics}, Path("many.png"))
    one, many = saved
    assert [axes.get_title("left") for axes in one.axes if axes.axison] == ["en", "de", "fr"]
    assert [axes.get_xlabel() for axes in one.axes if axes.axison] == ["", "updates", "updates"]
    told = [f"{name}, %\nen" for name in names] + ["de"] * 3 + ["fr"] * 3
    assert [axes.get_title("left") for axes in many.axes] == told
    assert {axes.get_ylabel() for axes in one.axes if axes.axison} == {"hits, %"}
    assert {axes.get_ylabel() for axes in many.axes} == {""}  # which is said above
    for figure in saved:
        assert figure.get_figwidth() == WIDTH_IN
        ends = [axes.lines[0].get_ydata()[-1] for axes in figure.axes if axes.axison]  # type: ignore[index]
        assert ends == sorted([3, 4, 5] * (len(ends) // 3))
        assert all(len(axes.lines) == 2 for axes in figure.axes if axes.axison)
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["layer", "none"]
        assert smallest_letters_px(figure) >= LEAST_PX


@pytest.mark.parametrize(("higher", "middle"), [(False, [3.0, 9.0]), (True, [3.0, 2.0])])
def test_a_seed_that_diverges_leaves_a_line_that_counts_it_as_worst(
    saved: list[Figure], higher: bool, middle: list[float]
) -> None:
    """And the range of the others: what the table tells is seen."""
    found = {"updates": [10, 20], "curves": {"hits": [[1.0, 2.0], [3.0, None], [8.0, 9.0]]}}
    axes = _panel(saved, higher=higher, norms={"layer": found})
    assert axes.lines[0].get_ydata().tolist() == middle
    (path,) = axes.collections[0].get_paths()
    assert {tuple(corner) for corner in path.vertices} >= {(20, 2), (20, 9), (10, 1), (10, 8)}


@pytest.mark.parametrize("seen", [[None, None], [3.0, 3.0]], ids=["diverged", "the same"])
def test_a_case_in_which_every_norm_diverged_or_none_moved_has_a_panel_too(
    saved: list[Figure], seen: list[float | None]
) -> None:
    found = {"updates": [10, 20], "curves": {"hits": [seen]}}
    axes = _panel(saved, higher=True, norms={"layer": found, "none": found})
    assert [line.get_label() for line in axes.lines] == ["layer", "none"]


@pytest.mark.parametrize("higher", [True, False])
def test_a_panel_has_the_best_in_sight_and_better_is_up_or_down_as_it_is(
    saved: list[Figure], higher: bool
) -> None:
    values = np.linspace(0, 100, 51)
    found = {"updates": list(range(51)), "curves": {"hits": [values.tolist()]}}
    axes = _panel(saved, higher=higher, norms={"layer": found, "none": found})
    bottom, top = axes.get_ylim()
    assert [line.get_markevery() for line in axes.lines] == [(0, 11), (1, 11)]
    assert bottom < top
    # A tenth of the values, the worst, is out of sight.
    assert (bottom < 10 < 100 < top) if higher else (bottom < 0 < 90 < top)
    assert (bottom > 0) if higher else (top < 100)


def test_each_metric_has_its_own_curves_and_each_rate_what_its_short_run_found() -> None:
    class Line:
        metrics = (_LOSS, _HITS)

    def run(losses: list[float], hits: list[float]) -> Run:
        rows = [
            {"update": 5 * i, "loss": a, "hits": b}
            for i, (a, b) in enumerate(zip(losses, hits, strict=True))
        ]
        return Run({"name": "x"}, 9, len(hits) + hits[0], rows, {"loss": losses[-1]})

    short = {1e-3: run([7.0, 8.0], [0.0, 0.0]), 1e-2: run([math.nan, math.nan], [0.0, 0.0])}
    full = [run([3.14159265, 2.0], [10.0, 20.0]), run([4.0, 1.0], [11.0, math.nan])]
    told = _case(Line(), _PLAN, [Contender("none", short, 1e-3, full)])["norms"]["none"]  # type: ignore[arg-type]
    assert told["rates"] == {"0.001": 7.0, "0.01": None}
    assert told["updates"] == [0, 5]
    assert told["seconds"] == [12.0, 13.0]
    assert told["curves"] == {
        "loss": [[3.1416, 2.0], [4.0, 1.0]],
        "hits": [[10.0, 20.0], [11.0, None]],
    }
