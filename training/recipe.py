"""A recipe: everything that decides a training run, as a TOML file: its kind and four tables."""

from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from contract.files import from_toml
from training.config import BatchConfig, DataConfig, Recipe, TrainConfig
from training.kinds import KINDS

FOLDER = Path(__file__).with_name("recipes")
_TYPES = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", tuple: "a list"
}  # fmt: skip
T = TypeVar("T")


def read_recipe(name: str, settings: Iterable[str] = ()) -> Recipe:
    """A recipe by name or path, with `table.key=value` settings laid over it.

    Raises `ValueError` for a table, key or value it does not know.
    """
    path = FOLDER / f"{name}.toml"
    if not path.exists():
        path = Path(name)
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.toml")))
        raise ValueError(f"recipe is {name!r}; it must be a file or one of: {known}")
    try:
        tables = from_toml(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no recipe: {error}") from error
    for setting in settings:
        place, equals, value = setting.partition("=")
        table, dot, key = place.partition(".")
        if not (equals and dot):
            raise ValueError(f"--set is {setting!r}; it must look like model.units=512")
        values = tables.setdefault(table, {})
        if not isinstance(values, dict):
            raise ValueError(f"--set is {setting!r}; {table} is no table")
        values[key] = _value(value)
    kind = str(tables.pop("kind", KINDS.default))
    try:
        model = KINDS[kind].config
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
    return recipe_of(tables, kind, model, path.name)


def recipe_of(tables: dict[str, Any], kind: str, model: type, name: str) -> Recipe:
    """A recipe from the four tables of the file `name`; `model` is the class of `[model]`.

    Raises `ValueError` for a table, key or value it does not know.
    """
    kinds: dict[str, type] = {
        "data": DataConfig,
        "model": model,
        "batch": BatchConfig,
        "training": TrainConfig,
    }
    if unknown := sorted(tables.keys() - kinds.keys()):
        raise ValueError(f"{name}: unknown table {', '.join(unknown)}")
    if no_tables := sorted(t for t, content in tables.items() if not isinstance(content, dict)):
        raise ValueError(f"{name}: no table, but a value: {', '.join(no_tables)}")
    built: dict[str, Any] = {t: build(kinds[t], tables.get(t, {}), t) for t in kinds}
    return Recipe(kind=kind, **built)


def _value(text: str) -> Any:
    try:
        return from_toml(f"value = {text}")["value"]
    except ValueError:
        return text  # a bare word is a string


def build(kind: type[T], content: dict[str, Any], table: str) -> T:
    """One table as its class. Raises `ValueError` for a key or value it does not know."""
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    if unknown := sorted(content.keys() - known.keys()):
        raise ValueError(f"[{table}]: unknown key {', '.join(unknown)}")
    required = {n for n, f in known.items() if f.default is f.default_factory is MISSING}
    if missing := sorted(required - content.keys()):
        raise ValueError(f"[{table}]: {', '.join(missing)} is missing")
    for name, value in content.items():
        if (words := words_of(hints[name])) and value not in words:
            raise ValueError(f"{table}.{name} is {value!r}; it must be one of {', '.join(words)}")
        default = known[name].default
        if default is MISSING or default is None:
            continue
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            try:
                content[name] = float(value)
            except OverflowError as error:
                raise ValueError(f"{table}.{name} is {error}") from error
        elif type(value) is not type(default):
            told = _TYPES[type(default)]
            raise ValueError(f"{table}.{name} is {value!r}; it must be {told}")
    return kind(**content)


def words_of(hint: Any) -> tuple[str, ...]:
    """Those among which a value of this type is chosen, if it is one of a few."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(word for part in get_args(hint) for word in words_of(part))
