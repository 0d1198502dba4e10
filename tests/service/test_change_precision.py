"""Models in two precisions that come and go: how fast one is beside the other is measured anew."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.catalogue import Models
from service.errors import EngineFault
from service.kinds import KINDS
from service.metrics import Metrics
from service.models import Speedup
from tests.service.changing import Changing, changing
from tests.service.serving import eventually, settings

_PATIENCE_S = 10.0


@pytest.fixture(params=["letters", "scrawl"])
def both(
    request: pytest.FixtureRequest, in_both: Callable[[str, Path], Path], tmp_path: Path
) -> Path:
    """A folder with a model of either kind in both precisions, named by the exact one."""
    return in_both(request.param, tmp_path / request.param)


def test_a_precision_that_comes_while_serving_is_measured(both: Path, tmp_path: Path) -> None:
    eight = f"{both.name}-int8"
    (both / eight).rename(tmp_path / eight)
    with changing(both, precision="int8") as service:
        (tmp_path / eight).rename(both / eight)
        service.look()
        models = {model["id"]: model for model in service.client.get("/v1/models").json()["data"]}
        assert models[eight]["speedup"] > 0
        assert models[eight]["default"]


def test_a_pair_whose_run_fails_keeps_no_other_from_being_measured(
    letters: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = (
        SimpleNamespace(name=name, engine=SimpleNamespace(ready=True), speedups=[])
        for name in ("one", "other")
    )
    compared: list[Any] = []

    async def compare(exact: Any, eight: Any) -> None:
        compared.append(eight)
        if eight is one:
            raise EngineFault("the run broke")

    monkeypatch.setattr("service.catalogue.pairs", lambda models: [(other, one), (one, other)])
    monkeypatch.setattr("service.catalogue.compare", compare)
    asyncio.run(Models(settings(letters), Metrics(), KINDS)._compare())
    assert compared == [one, other]
    assert caplog.messages == ["one was not measured beside other: the run broke"]


def test_a_model_that_is_stuck_as_it_is_measured_can_be_unloaded(
    letters: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing else ends its run, and others could not be changed either."""
    pair = [
        SimpleNamespace(name=name, engine=SimpleNamespace(ready=True), speedups=[])
        for name in ("exact", "eight")
    ]

    async def changed() -> None:
        stuck = asyncio.Event()

        async def compare(exact: Any, eight: Any) -> None:
            stuck.set()
            await asyncio.Event().wait()

        monkeypatch.setattr("service.catalogue.compare", compare)
        models = Models(settings(letters, stall_timeout_s=0.01), Metrics(), KINDS)
        models["letters"].engine.attested.set()
        measuring = asyncio.create_task(models.compare())
        await stuck.wait()
        await asyncio.wait_for(models.unload("letters"), _PATIENCE_S)
        await measuring
        assert not list(models)

    monkeypatch.setattr("service.catalogue.pairs", lambda models: [pair])
    asyncio.run(changed())
    assert "eight was not measured beside exact: it took longer than 0.01 s" in caplog.messages


def test_what_was_measured_beside_an_exact_model_goes_with_it(both: Path) -> None:
    """It may be of another size when it comes back, and `auto` would still go by the old ratio."""
    eight = f"{both.name}-int8"

    def ratios(service: Changing) -> list[float | None]:
        told = service.client.get(f"/v1/models/{eight}").json()
        return [told["speedup"], told["speedup_crowded"]]

    with changing(both) as service:
        assert eventually(lambda: service.models[eight].speedups)
        for change in ("reload", "unload", "load"):
            if change != "load":
                service.models[eight].speedups[service.models[both.name]] = Speedup(99.0, 98.0)
                assert ratios(service) == [99.0, 98.0]
            assert service.tell(change, both.name).status_code == 200
            if change == "unload":
                assert ratios(service) == [None, None]
            else:
                assert all(0 < ratio < 98 for ratio in ratios(service))
