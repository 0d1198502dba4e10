"""A model whose run does not end keeps nobody waiting past a deadline."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.engine import terms
from tests.service.serving import Service, contents, eventually, held, running, settings

_LINE = [[[float(x), 100 + 9.0 * (x % 20 > 9)] for x in range(0, 200, 10)]]
_WANTED_S = 0.05


@pytest.fixture(scope="module")
def service(inks: Path) -> Iterator[Service]:
    """Where an engine has no more time than a moment to end what is past its deadline, and is not
    spared the little that the event loop could do."""
    chosen = settings(inks, chunk_steps=1)
    with pytest.MonkeyPatch.context() as patch, running(chosen) as started:
        patch.setattr(terms, "_GRACE_S", _WANTED_S)
        yield started


def _is_stuck(service: Service, model: str) -> bool:
    stalled_s: float = service.client.get("/health").json()["models"][model]["stalled_s"]
    return stalled_s > 0


def test_an_answer_of_a_model_that_is_stuck_is_a_504(service: Service) -> None:
    with held(service.app.state.models["letters"]):
        late = service.post(max_tokens=5, deadline_s=_WANTED_S)
        assert _is_stuck(service, "letters")
        assert late.status_code == 504
        assert late.json()["error"]["code"] == "deadline_exceeded"
    assert eventually(lambda: service.metric("requests_running") == 0)
    assert service.post(max_tokens=5).status_code == 200


def test_every_choice_of_a_model_that_is_stuck_ends_with_an_error(service: Service) -> None:
    with held(service.app.state.models["letters"]):
        late = service.post(max_tokens=5, deadline_s=_WANTED_S, stream=True, n=3)
        assert _is_stuck(service, "letters")
        events = contents(late.text)
        assert [event["index"] for event in events] == [0, 1, 2]
        assert {event["error"]["code"] for event in events} == {"deadline_exceeded"}


def test_ink_is_not_read_for_ever_by_a_model_that_is_stuck(service: Service) -> None:
    with held(service.app.state.models["squint"]):
        body = {"strokes": _LINE, "line_height": 64, "deadline_s": _WANTED_S}
        late = service.client.post("/v1/read", json=body)
        assert _is_stuck(service, "squint")
        assert late.status_code == 504, late.text
