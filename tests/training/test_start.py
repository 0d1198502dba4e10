"""What a run may begin from, by what an artifact says of itself."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from contract.manifest import MANIFEST, WEIGHTS, sha256
from models.language import LanguageConfig, LanguageModel
from training.config import DataConfig, Recipe
from training.run import carry_out
from training.start import begin_from

_SIZES: dict[str, Any] = {"units": 6, "embedding": 4}
_RECIPE = Recipe(kind="language", data=DataConfig(source="nowhere"), model=LanguageConfig(**_SIZES))
Write = Callable[..., LanguageModel]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes an artifact of some hyperparameters, whose manifest has what is given besides."""

    def written(config: dict[str, Any], **facts: Any) -> LanguageModel:
        model = LanguageModel(LanguageConfig(**_SIZES | config))
        (tmp_path / MANIFEST).touch()
        save_file(model.state_dict(), tmp_path / WEIGHTS)
        usual = {
            "name": "first",
            "digest": "d" * 64,
            "kind": "language",
            "precision": "float32",
            "hyperparameters": asdict(model.config),
            "files": {WEIGHTS: sha256(tmp_path / WEIGHTS)},
        }
        manifest = SimpleNamespace(**usual | facts)
        monkeypatch.setattr("training.start.read_manifest", lambda folder: manifest)
        return model

    return written


@pytest.mark.parametrize("path", ["input_dropout", "recurrent_dropout", "output_dropout"])
def test_what_is_left_out_may_be_other_than_it_was(tmp_path: Path, write: Write, path: str) -> None:
    theirs, mine = write({path: 0.5}), LanguageModel(_RECIPE.model)
    assert begin_from(tmp_path, mine, _RECIPE) == {"name": "first", "digest": "d" * 64}
    own = mine.state_dict()
    assert all(torch.equal(own[name], tensor) for name, tensor in theirs.state_dict().items())


def test_weights_that_are_none_are_told_with_their_artifact(tmp_path: Path, write: Write) -> None:
    write({}, files={WEIGHTS: hashlib.sha256(b"no weights").hexdigest()})
    (tmp_path / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(ValueError, match=f"{tmp_path} is of another version or was altered"):
        begin_from(tmp_path, LanguageModel(_RECIPE.model), _RECIPE)


def test_what_differs_is_told_of_both(tmp_path: Path, write: Write) -> None:
    write({"units": 8, "cell": "gru"})
    told = r"which has cell=gru, units=8; the recipe has lstm, 6$"
    with pytest.raises(ValueError, match=told):
        begin_from(tmp_path, LanguageModel(_RECIPE.model), _RECIPE)


@pytest.mark.parametrize("facts", [{"precision": "int8"}, {"kind": "handwriting"}], ids=str)
def test_another_kind_or_eight_bits_are_no_beginning(
    tmp_path: Path, write: Write, facts: dict[str, str]
) -> None:
    write({}, **facts)
    told = " and ".join(f"{name} {value}" for name, value in facts.items())
    with pytest.raises(ValueError, match=f"{told}.*; it must be of kind language and float32"):
        begin_from(tmp_path, LanguageModel(_RECIPE.model), _RECIPE)


def test_what_is_no_beginning_is_told_before_the_data_is_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--from is .*, which is not an artifact"):
        carry_out(_RECIPE, tmp_path / "run", "cpu", Path(), tmp_path)
