"""A served handwriting model, with its stored hands."""

from typing import Any

from contract.ink import STYLES, InkManifest
from service.artifact import Artifact, ArtifactError
from service.engine.runtime import Runtime
from service.ink.letters import MARKS
from service.ink.line import InkEdge
from service.ink.measure import Measures
from service.models import ServedModel
from service.shared import Shared
from service.state import Moment, StateCodec


class InkModel(ServedModel):
    """`styles` are the stored hands by id, `looks` the measures of those that were asked for, and
    `previews` their drawings, each with the fingerprint of whatever chose it; either is `shared` by
    those who ask for it while it is made."""

    def __init__(
        self, artifact: Artifact, runtime: Runtime, codec: StateCodec[Any], *, allow_unproved: bool
    ) -> None:
        super().__init__(artifact, runtime, codec, allow_unproved=allow_unproved)
        self.styles = stored_hands(artifact, self.manifest)
        self.looks: dict[str, Measures] = {}
        self.previews: dict[str, tuple[str | None, str]] = {}
        self.shared = Shared()

    @property
    def manifest(self) -> InkManifest:
        """The manifest, which has more to say than that of any model."""
        assert isinstance(self.artifact.manifest, InkManifest)
        return self.artifact.manifest

    def fresh(self, seed: int) -> Moment[InkEdge]:
        """A hand the model will make up."""
        return Moment(self.artifact.initial_state(), seed, 0, 0, InkEdge())

    def describe(self) -> dict[str, Any]:
        writes = {"characters": self.manifest.alphabet.characters, "marks": sorted(MARKS)}
        return super().describe() | {"ink": self.manifest.ink.model_dump(), "writes": writes}


def stored_hands(artifact: Artifact, manifest: InkManifest) -> dict[str, Moment[InkEdge]]:
    """The stored hands of an artifact, by id. Raises `ArtifactError` for a state that is missing
    or has not the shape of the graph's."""
    if not manifest.styles:
        return {}
    if STYLES not in manifest.files:
        raise ArtifactError(f"{artifact.folder}: files: {STYLES} is not among them")
    tensors, hands = artifact.tensors(STYLES), {}
    for style in manifest.styles:
        state = {}
        for port in manifest.ports.state:
            name = f"{style.id}.{port.name}"
            if name not in tensors:
                raise ArtifactError(f"{artifact.folder}: {STYLES} has no tensor {name!r}")
            if (tensors[name].shape, tensors[name].dtype.name) != (port.shape, port.dtype):
                raise ArtifactError(f"{artifact.folder}: {STYLES}: {name} is not {port.shape}")
            state[port.name] = tensors[name]
        edge = InkEdge(context=style.context, height=style.height, advance=style.advance)
        hands[style.id] = Moment(state, 0, 0, 0, edge)
    return hands
