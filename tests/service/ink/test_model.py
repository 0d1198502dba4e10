"""A handwriting model is served with every hand as its file has it, or not at all."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from contract.ink import InkManifest
from service.artifact import ArtifactError, load_artifact
from service.catalogue import Models
from service.ink.hands import MADE_UP, by_seed
from service.ink.kind import INK
from service.ink.model import InkModel, stored_hands
from service.kinds import KINDS
from service.metrics import Metrics
from tests.artifacts import HANDS
from tests.service.altered import edit_golden, edit_manifest, rehash
from tests.service.serving import settings

_STYLES = "styles.safetensors"


def _served(artifact: Path) -> InkModel:
    model = Models(settings(artifact.parent, slots=1), Metrics(), KINDS)["scrawl"]
    assert isinstance(model, InkModel)
    return model


def _edit_styles(artifact: Path, edit: Callable[[dict[str, np.ndarray]], object]) -> None:
    tensors = load_file(artifact / _STYLES)
    edit(tensors)
    save_file(tensors, artifact / _STYLES)
    rehash(artifact)


def test_every_hand_is_as_the_file_has_it(copy: Path) -> None:
    model, tensors = _served(copy), load_file(copy / _STYLES)
    assert tuple(model.styles) == HANDS
    for hand, moment in model.styles.items():
        assert {n: (a.shape, a.dtype.name) for n, a in moment.state.items()} == {
            p.name: (p.shape, p.dtype) for p in model.manifest.ports.state
        }
        for name, array in moment.state.items():
            assert array.tobytes() == tensors[f"{hand}.{name}"].tobytes()
        assert moment.state["kappa"].min() > -20
    digest = model.artifact.digest
    rehash(copy)
    assert load_artifact(copy).digest == digest


def test_a_hand_is_as_wide_as_its_manifest_says(copy: Path) -> None:
    edit_manifest(copy, lambda manifest: manifest["styles"][0].update(advance=5.5))
    assert _served(copy).styles[HANDS[0]].edge.advance == 5.5


def test_no_bound_of_its_golden_vectors_may_let_other_models_pass(copy: Path) -> None:
    edit_golden(copy, drawn=1.0)
    with pytest.raises(ArtifactError, match=r"bound of drawn is 1; it must be at most 0\.01"):
        load_artifact(copy)


def test_hands_without_their_file_are_refused(copy: Path) -> None:
    edit_manifest(copy, lambda manifest: manifest["files"].pop(_STYLES))
    with pytest.raises(ArtifactError, match=r"styles\.safetensors is not among them"):
        _served(copy)


def test_a_hand_without_a_tensor_is_refused(copy: Path) -> None:
    _edit_styles(copy, lambda tensors: tensors.pop("hasty.kappa"))
    with pytest.raises(ArtifactError, match=r"styles\.safetensors has no tensor 'hasty\.kappa'"):
        _served(copy)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda array: array[:-1],
        lambda array: array[None],
        lambda array: array[:1],  # which numpy would spread over the whole state
        lambda array: array.astype(np.float64),
    ],
    ids=["short", "deep", "one", "double"],
)
def test_a_hand_of_another_shape_is_refused(
    copy: Path, wrong: Callable[[np.ndarray], np.ndarray]
) -> None:
    def edit(tensors: dict[str, np.ndarray]) -> None:
        tensors["upright.kappa"] = np.ascontiguousarray(wrong(tensors["upright.kappa"]))

    _edit_styles(copy, edit)
    with pytest.raises(ArtifactError, match=r"styles\.safetensors: upright\.kappa is not \(3,\)"):
        _served(copy)


def test_hands_that_cannot_be_read_are_refused(copy: Path) -> None:
    (copy / _STYLES).write_bytes(b"no tensors")
    rehash(copy)
    with pytest.raises(ArtifactError, match=r"scrawl: styles\.safetensors: "):
        _served(copy)


def test_hands_that_were_exchanged_since_they_were_checked_are_refused(copy: Path) -> None:
    loaded, tensors = load_artifact(copy), load_file(copy / _STYLES)
    save_file({name: array + 1 for name, array in tensors.items()}, copy / _STYLES)
    assert isinstance(loaded.manifest, InkManifest)
    with pytest.raises(
        ArtifactError, match=r"styles\.safetensors has sha256 .* cut short or altered"
    ):
        stored_hands(loaded, loaded.manifest)


def test_a_model_without_hands_needs_no_file_of_them(copy: Path) -> None:
    def edit(manifest: dict[str, object]) -> None:
        manifest["styles"] = []
        del manifest["files"][_STYLES]  # type: ignore[attr-defined]

    edit_manifest(copy, edit)
    (copy / _STYLES).unlink()
    model = _served(copy)
    assert model.styles == {}
    assert by_seed(model, 7) == MADE_UP  # as a page is written that asks for no hand


def test_a_manifest_whose_kind_does_not_fit_is_refused(copy: Path) -> None:
    edit_manifest(copy, lambda manifest: manifest.update(kind="language"))
    with pytest.raises(ArtifactError, match=r"manifest\.json: alphabet\.kind: .*'bytes'"):
        load_artifact(copy)


def test_the_kind_is_found_by_the_name_manifests_give_it(inks: Path) -> None:
    assert KINDS[load_artifact(inks / "scrawl").manifest.kind] is INK
