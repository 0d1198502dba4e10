"""A handwriting model proves itself by its mixtures and by the points it would have drawn."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from contract.golden import Golden
from tests.service.altered import edit_golden, perturb
from tests.service.serving import attested, running, settings
from tests.service.writing import InkService

_SHIPPED = Path(__file__).parents[3] / "artifacts" / "handwriting"
_RUNNERS = pytest.mark.parametrize("runner", ["scan", "slots"])


@_RUNNERS
@pytest.mark.parametrize("slots", [1, 2, 5])
def test_an_untouched_artifact_proves_itself(inks: Path, runner: str, slots: int) -> None:
    verdict = attested(inks / "scrawl", runner, slots)
    assert verdict.ok, verdict
    assert 0 < verdict.max_error <= verdict.bound
    assert verdict.steps == 160 * 4


@_RUNNERS
@pytest.mark.parametrize(
    ("weight", "place"),
    [
        ("first.weight_h", (0, 0)),
        ("above.cells.0.weight_h", (191, 47)),
        ("window.parameters_of.weight", (7, 20)),
        ("readout.weight", (3, 90)),
    ],
)
def test_one_weight_off_by_a_thousandth_fails_although_hashes_agree(
    copy: Path, runner: str, weight: str, place: tuple[int, int]
) -> None:
    perturb(copy, weight, place, 1e-3)
    verdict = attested(copy, runner)
    assert not verdict.ok
    assert verdict.max_error > verdict.bound
    assert "mixture: outside the bound at step" in verdict.detail


def test_a_point_drawn_elsewhere_fails_although_the_mixture_agrees(copy: Path) -> None:
    edit_golden(
        copy,
        lambda golden: golden["truth.drawn"][7, 1].__iadd__(1.0),
        mixture=0.004,
        drawn=0.004,
    )
    verdict = attested(copy)
    assert not verdict.ok
    assert verdict.detail == "drawn: outside the bound at step 7: 1 > 0.004"
    assert verdict.max_error < 0.004


def test_other_noise_draws_other_points(copy: Path) -> None:
    def swap(golden: dict[str, np.ndarray]) -> None:
        golden["steps.uniform"][:] = golden["steps.uniform"][::-1].copy()

    edit_golden(copy, swap, mixture=0.004, drawn=0.004)
    assert attested(copy).detail.startswith("drawn: outside the bound")


@_RUNNERS
@pytest.mark.parametrize("name", ["character", "ended"])
def test_a_text_that_ends_elsewhere_fails_although_points_agree(
    copy: Path, runner: str, name: str
) -> None:
    def edit(golden: dict[str, np.ndarray]) -> None:
        golden[f"exact.{name}"][9, 1] ^= 1

    edit_golden(copy, edit)
    verdict = attested(copy, runner)
    assert not verdict.ok
    assert verdict.detail == f"{name} differs from the golden one at step 9"


def test_of_the_shipped_golden_vectors_one_text_ends_and_others_go_on() -> None:
    ended = Golden.load(_SHIPPED / "golden.safetensors").exact["ended"].any(axis=0)
    assert ended.any()
    assert not ended.all()


def test_a_model_with_an_altered_weight_writes_nothing(copy: Path) -> None:
    perturb(copy, "first.weight_h", (0, 0), 1e-3)
    with running(settings(copy.parent), ready=False) as started:
        service = InkService(started.app, started.client)
        while service.model.verdict is None:
            pass
        refused = service.post(text="a")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
        assert service.client.get("/v1/styles").status_code == 503
        with service.client.websocket_connect("/v1/online") as socket:
            socket.send_json({"model": "scrawl"})
            assert socket.receive_json()["error"]["code"] == "not_ready"


def test_attested_again_among_other_pages_the_verdict_is_the_same(pen: InkService) -> None:
    first = pen.client.get("/v1/models/scrawl").json()["attestation"]
    with ThreadPoolExecutor(7) as pool:
        others = [pool.submit(pen.post, text="some words " * (1 + i)) for i in range(6)]
        for _ in range(2):
            answer = pen.client.post("/v1/models/scrawl/attest")
            assert (answer.status_code, answer.json()) == (200, first)
        assert {other.result().status_code for other in others} == {200}
    assert first["ok"] is True
