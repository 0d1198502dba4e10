"""A third kind goes from training to `/v1/online` by registering its objects, and no more."""

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from contract.manifests import MANIFESTS
from export.artifact import read_artifact
from export.parity.report import Extent, Report
from export.verify import verify
from service.artifact import ArtifactError, load_artifact
from tests.kinds import waves
from tests.service.altered import copy_of
from tests.service.serving import Service, running, settings
from training.config import BatchConfig, DataConfig, Recipe
from training.kinds import KINDS as TRAINED
from training.run import carry_out

_SMALL = Extent(sampled_steps=480, structure_steps=60, bit_steps=4, timed=False)


@pytest.fixture(scope="module")
def artifact(sines: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Alone in its folder, to be reported on."""
    return copy_of(sines, tmp_path_factory.mktemp("artifacts"))


@pytest.fixture(scope="module")
def report(artifact: Path) -> Report:
    """The parity report, recorded in the manifest as `verify --record` does."""
    found = verify(artifact, None, _SMALL)
    manifest = read_artifact(artifact)
    manifest.model_copy(update={"parity": tuple(found.findings)}).write(artifact)
    return found


@pytest.fixture(scope="module", params=["scan", "slots"])
def service(request: pytest.FixtureRequest, artifact: Path, report: Report) -> Iterator[Service]:
    with running(settings(artifact.parent, runner=request.param, allow_unproved=False)) as started:
        yield started


def test_it_learns(artifact: Path) -> None:
    assert read_artifact(artifact).provenance["validation_loss"] < 0.0


def test_options_that_a_kind_has_not_are_refused(tmp_path: Path) -> None:
    """Of whatever kind, and whoever adds another: none is passed over in silence."""
    options = {field.name for field in fields(DataConfig)} - {"source", "validation_fraction"}
    usual = DataConfig(source="gone")
    given = {f"data.{name}": (replace(usual, **{name: 0.25}), BatchConfig()) for name in options}
    given["batch.steps"] = usual, BatchConfig(steps=7)
    given["batch.growing"] = usual, BatchConfig(growing=False)
    for kind, (option, (data, batch)) in product(TRAINED.values(), given.items()):
        if option.partition(".")[2] not in kind.options:
            recipe = Recipe(kind=kind.name, data=data, model=None, batch=batch)
            told = f"^{option}: a model of kind {kind.name} has no use for that"
            with pytest.raises(ValueError, match=told):
                carry_out(recipe, tmp_path, "cpu", Path())


def test_its_manifest_is_of_its_own_class(artifact: Path) -> None:
    manifest = read_artifact(artifact)
    assert isinstance(manifest, waves.WaveManifest)
    assert manifest.unit == "volt"
    assert manifest.layer_normalizations == 3


def test_every_bound_holds(report: Report) -> None:
    assert [f.line() for f in report.findings if not f.holds] == []
    assert {"structure", "rounding", "bits", "bits, control"} <= {f.name for f in report.findings}


def test_it_is_attested_and_ready(service: Service) -> None:
    entry = service.client.get("/v1/models/sines").json()
    assert entry["kind"] == "waves"
    assert entry["attestation"]["ok"]
    assert service.client.post("/v1/models/sines/attest").json()["ok"]


def test_what_it_writes_online_it_reads_the_same(service: Service) -> None:
    with service.client.websocket_connect("/v1/online") as socket:
        socket.send_json({"model": "sines", "seed": 5})
        assert socket.receive_json()["kind"] == "waves"
        socket.send_json({"write": 30})
        written = socket.receive_json()["values"]
    assert np.ptp(written) > 1
    with service.client.websocket_connect("/v1/online") as socket:
        socket.send_json({"model": "sines", "seed": 6, "scale": 0.0})
        socket.receive_json()
        socket.send_json({"values": written[:20]})
        mean = socket.receive_json()["gaussian"][0]
        socket.send_json({"write": 1})
        assert socket.receive_json()["values"] == [mean]


def test_a_completion_of_it_is_refused(service: Service) -> None:
    answer = service.client.post("/v1/completions", json={"model": "sines", "prompt": "a"})
    assert answer.status_code == 400
    assert "of kind waves" in answer.json()["error"]["message"]


def test_unregistered_it_is_unknown(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(MANIFESTS, "waves")
    with pytest.raises(ArtifactError, match="kind is 'waves'; it must be one of: language, handwr"):
        load_artifact(artifact)
