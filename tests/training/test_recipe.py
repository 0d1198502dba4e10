"""A recipe is the one that was named, with the values that were set."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from contract.manifests import read_manifest
from lab import experiment
from training.config import BatchConfig, DataConfig, TrainConfig
from training.kinds import KINDS
from training.recipe import FOLDER, build, read_recipe, words_of
from training.start import require_start

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"
_RESULTS = _ARTIFACTS.with_name("docs") / "results"
_RECIPES = sorted(path.stem for path in FOLDER.glob("*.toml"))
_FROM = r"-m export train (\S+) --from artifacts/([\w-]+)"
_TABLES = [
    *(DataConfig, BatchConfig, TrainConfig),
    *(kind.config for kind in KINDS.values()),
    *(experiment.load(name).config for name in experiment.names()),
]


def test_a_shipped_recipe_is_found_whatever_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = read_recipe("quickstart")
    (tmp_path / "quickstart").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_recipe("quickstart") == shipped


@pytest.mark.parametrize(
    ("artifact", "name"),
    [
        ("handwriting", "handwriting-own"),
        ("reader", "reader-reordered"),
        ("shakespeare", "shakespeare"),
        ("shakespeare-int8", "shakespeare-int8"),
    ],
)
def test_a_shipped_model_was_trained_as_its_recipe_says(artifact: str, name: str) -> None:
    """Whoever trains it again has the same, settings that it leaves to their defaults as well."""
    manifest, recipe = read_manifest(_ARTIFACTS / artifact), read_recipe(name)
    told, data = manifest.provenance, manifest.provenance["data"]
    assert (manifest.kind, manifest.hyperparameters) == (recipe.kind, asdict(recipe.model))
    assert (told["batch"], told["training"]) == (asdict(recipe.batch), asdict(recipe.training))
    assert data["validation_fraction"] == recipe.data.validation_fraction
    assert {n: data[n] for n in data.keys() & recipe.data.options()} == recipe.data.options()


@pytest.mark.parametrize("name", _RECIPES)
def test_a_shipped_recipe_asks_its_kind_for_nothing_that_it_has_not(name: str) -> None:
    """It would be refused."""
    recipe = read_recipe(name)
    kind = KINDS[recipe.kind]
    assert recipe.data.options().keys() | recipe.batch.options().keys() <= kind.options
    assert kind.calibrates >= recipe.training.calibrated


def test_a_recipe_that_goes_on_from_an_artifact_can_and_goes_through_no_short_texts_again() -> None:
    """By the command in its first lines."""
    ways = {n: re.search(_FROM, (FOLDER / f"{n}.toml").read_text()) for n in _RECIPES}
    told = {name: way.groups() for name, way in ways.items() if way}
    assert len(told) >= 10
    for name, (same, artifact) in told.items():
        assert same == name
        recipe = read_recipe(name)
        require_start(_ARTIFACTS / artifact, recipe)
        assert recipe.kind == "language" or not recipe.batch.growing, name
    assert all(name in told for name in _RECIPES if read_recipe(name).training.blend)


@pytest.mark.parametrize("name", ["contrast", "pen-contrast"])
def test_norms_were_compared_as_the_recipe_says(name: str) -> None:
    """Settings that came later are as usual."""
    told = json.loads((_RESULTS / f"{name}.json").read_text("utf-8"))["recipe"]
    now = asdict(read_recipe(name))
    assert told.pop("kind", now["kind"]) == now["kind"]
    for table, settings in told.items():
        assert {setting: now[table][setting] for setting in settings} == settings


def test_what_is_trained_before_it_is_served_takes_about_a_minute_on_any_machine() -> None:
    limit_s = read_recipe("quickstart").training.time_limit_s
    assert limit_s is not None
    assert 60 <= limit_s <= 90


def test_a_value_that_is_set_may_have_an_equals_sign() -> None:
    assert read_recipe("quickstart", ["data.source=/a=b/c.d=e"]).data.source == "/a=b/c.d=e"


def test_of_two_values_that_are_set_the_last_counts() -> None:
    recipe = read_recipe("quickstart", ["batch.rows=3", "batch.rows=4"])
    assert recipe.batch.rows == 4


def test_a_value_where_a_table_belongs_is_refused(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("model = 3\n[data]\nsource = 'a'\n")
    with pytest.raises(ValueError, match=r"mine\.toml: no table, but a value: model"):
        read_recipe(str(recipe))


def test_a_recipe_nested_without_an_end_is_none(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(f"x = {'[' * 20_000}")
    with pytest.raises(ValueError, match=r"mine\.toml is no recipe"):
        read_recipe(str(recipe))
    with pytest.raises(ValueError, match=r"training\.seed is '\[\["):
        read_recipe("quickstart", [f"training.seed={'[' * 20_000}"])


def test_a_recipe_of_tables_in_tables_without_an_end_is_none(tmp_path: Path) -> None:
    """A key of many parts is read without calling anything in turn, and makes a table of each."""
    tables, recipe = f"{'a.' * 4_000}a = 1", tmp_path / "mine.toml"
    recipe.write_text(f"[training]\nseed.{tables}")
    with pytest.raises(ValueError, match=r"mine\.toml is no recipe: it is nested too deep"):
        read_recipe(str(recipe))
    with pytest.raises(ValueError, match=r"training\.seed is '{a\.a"):
        read_recipe("quickstart", [f"training.seed={{{tables}}}"])


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("data.marked=2", "data.marked is 2.0 and figured 0.0; they must be from 0 and, together"),
        (
            "data.figured=-1",
            "data.marked is 0.0 and figured -1.0; they must be from 0 and, together",
        ),
        ("data.varied=-1", "data.varied is -1.0; it must be from 0 and below 0.5"),
        ("data.varied=0.5", "data.varied is 0.5; it must be from 0 and below 0.5"),
        (f"training.seed={2**63}", f"training.seed is {2**63}; it must be from 0 to 2**63 - 1"),
        ("data.reordered=2", "data.reordered is 2.0; it must be from 0 to 1"),
        ("data.own=2", "data.own is 2.0; it must be from 0 to 1"),
        ("data.validation_fraction=1", "data.validation_fraction is 1.0; it must be between 0 and"),
        (
            "training.average_decay=-1",
            "training.average_decay is -1.0; it must be from 0 and below",
        ),
    ],
)
def test_a_value_out_of_its_range_is_told_with_the_name_that_sets_it(
    setting: str, told: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        read_recipe("quickstart", [setting])


_INF, _MILLION = float("inf"), 1_000_000


@pytest.mark.parametrize(
    ("table", "name", "allowed", "refused"),
    [
        (DataConfig, "source", ["a"], [""]),
        (DataConfig, "validation_fraction", [0.01, 0.99], [0, 1]),
        (DataConfig, "marked", [0, 0.99], [-0.01, 1]),
        (DataConfig, "figured", [0, 0.99], [-0.01, 1]),
        (DataConfig, "varied", [0, 0.49], [-0.01, 0.5]),
        (DataConfig, "reordered", [0, 1], [-0.01, 1.01]),
        (DataConfig, "own", [0, 1], [-0.01, 1.01]),
        (BatchConfig, "rows", [1], [0, -1]),
        (BatchConfig, "steps", [1], [0, -1]),
        (TrainConfig, "epochs", [0.01, _MILLION], [0, _MILLION + 1, _INF]),
        (TrainConfig, "validate_every_epochs", [0.01, _MILLION], [0, _MILLION + 1, _INF]),
        (TrainConfig, "learning_rate", [1e-9, _MILLION], [0, _MILLION + 1, _INF]),
        (TrainConfig, "clip_norm", [0.01, 1e300], [0, _INF]),
        (TrainConfig, "time_limit_s", [None, 0.01], [0, _INF]),
        (TrainConfig, "average_decay", [0, 0.9999], [-0.01, 1]),
        (TrainConfig, "blend", [0, 0.99], [-0.01, 1]),
        (TrainConfig, "seed", [0, 2**63 - 1], [-1, 2**63]),
        *(
            (TrainConfig, name, [0, 10_000], [-1, _INF, float("nan")])
            for name in ("warmup_updates", "weight_decay", "patience_epochs", "save_every_s")
        ),
    ],
)
def test_a_value_may_be_at_its_bounds_and_not_beyond(
    table: type, name: str, allowed: list[Any], refused: list[Any]
) -> None:
    given = {"source": "a"} if table is DataConfig else {}
    for value in allowed:
        assert getattr(table(**given | {name: value}), name) == value
    for value in refused:
        with pytest.raises(ValueError, match=rf"\b{name} (is )?{re.escape(str(value))}"):
            table(**given | {name: value})


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("batch.rows=true", "batch.rows is True; it must be a whole number"),
        ("training.epochs=true", "training.epochs is True; it must be a number"),
        ("training.epochs='3'", "training.epochs is '3'; it must be a number"),
        ("training.epochs=[3]", "training.epochs is [3]; it must be a number"),
        ("batch.growing=1", "batch.growing is 1; it must be true or false"),
    ],
)
def test_a_value_of_another_type_is_told_in_words(setting: str, told: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(told)}$"):
        read_recipe("quickstart", [setting])


def test_an_update_is_no_larger_than_anybody_trains() -> None:
    read_recipe("quickstart", ["batch.rows=16384"])  # of 64 steps
    with pytest.raises(ValueError, match=r"rows is 16385 .* at most 1048576 steps of all rows"):
        read_recipe("quickstart", ["batch.rows=16385"])


@pytest.mark.parametrize("table", _TABLES, ids=lambda table: table.__name__)
def test_a_word_is_one_of_those_that_mean_something(table: type) -> None:
    """What else it is, is told before any data is read, which alone may have any name."""
    given = {"source": "synthetic"} if table is DataConfig else {}
    for name, hint in get_type_hints(table).items():
        assert hint is not str or name in ("source", "language"), f"{name} may be any word"
        if words := words_of(hint):
            with pytest.raises(ValueError, match=f"^it.{name} is 'nothing'; it must be one of "):
                build(table, given | {name: "nothing"}, "it")
            assert getattr(build(table, given | {name: words[0]}, "it"), name) == words[0]
