"""A recipe: everything that decides a training run, as a TOML file: its kind and four tables."""

import tomllib
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from export.train import TrainConfig
from models.handwriting import HandwritingConfig
from models.language import LanguageConfig

FOLDER = Path(__file__).with_name("recipes")
# What a model of each kind is made of; the kind of a recipe is language unless it says.
MODELS = {"language": LanguageConfig, "handwriting": HandwritingConfig}
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """`source`: a file or folder, absolute or in the data folder; or data that needs no file,
    `pydoc` for language and `synthetic` for handwriting."""

    source: str
    validation_fraction: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction is {self.validation_fraction}; it must be between 0 and 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """`rows` side by side in an update, `steps` of each; handwriting has whole rows instead."""

    rows: int = 64
    steps: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The four tables of a recipe file; `model` says by its type which kind it is."""

    data: DataConfig
    model: LanguageConfig | HandwritingConfig = field(default_factory=LanguageConfig)
    batch: BatchConfig = field(default_factory=BatchConfig)
    training: TrainConfig = field(default_factory=TrainConfig)


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
    tables: dict[str, Any] = tomllib.loads(path.read_text())
    for setting in settings:
        place, equals, value = setting.partition("=")
        table, dot, key = place.partition(".")
        if not (equals and dot):
            raise ValueError(f"--set is {setting!r}; it must look like model.units=512")
        tables.setdefault(table, {})[key] = _value(value)
    kind = tables.pop("kind", "language")
    if kind not in MODELS:
        raise ValueError(f"{path.name}: kind is {kind!r}; it must be one of: {', '.join(MODELS)}")
    kinds = {
        "data": DataConfig,
        "model": MODELS[kind],
        "batch": BatchConfig,
        "training": TrainConfig,
    }
    if unknown := sorted(tables.keys() - kinds.keys()):
        raise ValueError(f"{path.name}: unknown table {', '.join(unknown)}")
    built: dict[str, Any] = {t: _build(kinds[t], tables.get(t, {}), t) for t in kinds}
    return Recipe(**built)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # a bare word is a string


def _build(kind: type[T], content: dict[str, Any], table: str) -> T:
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(content.keys() - known.keys()):
        raise ValueError(f"[{table}]: unknown key {', '.join(unknown)}")
    for name, value in content.items():
        default = known[name].default
        if default is MISSING or default is None:
            continue
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            content[name] = float(value)
        elif type(value) is not type(default):
            raise ValueError(f"{table}.{name} is {value!r}; it must be a {type(default).__name__}")
    return kind(**content)
