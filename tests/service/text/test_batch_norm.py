"""A model under batch norm, served where it is allowed to be: its state counts the steps."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.artifacts import write_twin
from tests.service.serving import Service, running, settings

_FAR = 300  # more steps than there are bytes


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    artifact = write_twin(tmp_path_factory.mktemp("twin"))
    with running(settings(artifact.parent)) as service:
        yield service


def test_a_text_goes_on_however_many_steps_its_state_has_counted(twin: Service) -> None:
    asked = {"model": "twin", "seed": 3}
    whole = twin.choice(**asked, max_tokens=_FAR + 40, return_state=True)
    first = twin.choice(**asked, max_tokens=_FAR, return_state=True)
    rest = twin.choice(model="twin", max_tokens=40, state=first["state"], return_state=True)
    assert first["text"] + rest["text"] == whole["text"]
    assert rest["state"] == whole["state"]


@pytest.mark.parametrize("steps", [-1, -(2**62)])
def test_a_count_of_steps_that_is_none_is_refused(twin: Service, steps: int) -> None:
    codec = twin.app.state.models["twin"].codec
    moment = codec.decode(twin.choice(model="twin", max_tokens=3, return_state=True)["state"])
    token = codec.encode(replace(moment, state=moment.state | {"step": np.array(steps)}))
    refused = twin.post(model="twin", max_tokens=2, state=token)
    assert refused.status_code == 400
    assert "makes no sense" in refused.json()["error"]["message"]


def test_a_text_begins_from_the_state_before_its_first_step(twin: Service) -> None:
    nothing = twin.choice(model="twin", seed=3, max_tokens=0, return_state=True)
    rest = twin.choice(model="twin", max_tokens=20, state=nothing["state"])
    assert rest["text"] == twin.choice(model="twin", seed=3, max_tokens=20)["text"]
