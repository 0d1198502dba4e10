"""What Ray Serve is told of the service; Ray itself is not wanted here."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from service.settings import Settings

Deploy = Callable[..., dict[str, Any]]


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """What a deployment of so many replicas is told, and the settings each is built with."""
    told: dict[str, Any] = {}

    def deployment(replica: object, **options: Any) -> SimpleNamespace:
        told.update(options, replica=replica)
        return SimpleNamespace(bind=lambda: None)

    def ingress(build: Callable[[], object]) -> Callable[[type], type]:
        told["settings"] = build()
        return lambda replica: replica

    ray = ModuleType("ray")
    ray.serve = SimpleNamespace(  # type: ignore[attr-defined]
        deployment=deployment, ingress=ingress, Application=object
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delitem(sys.modules, "deploy.ray_serve", raising=False)
    module: Any = import_module("deploy.ray_serve")
    monkeypatch.setattr(module, "create_alone", lambda settings: settings)
    monkeypatch.setattr(module.logs, "set_up", lambda settings: told.update(logged=settings))

    def deployed(**chosen: int) -> dict[str, Any]:
        module.application(module.Replicas(**chosen))
        return dict(told)

    return deployed


def test_a_replica_has_time_to_say_what_is_wrong_with_it(deploy: Deploy) -> None:
    """A run is called stuck by the service first, and what is under way may end."""
    told, defaults = deploy(), Settings()
    assert told["health_check_timeout_s"] > defaults.stall_timeout_s
    assert told["graceful_shutdown_timeout_s"] > defaults.drain_timeout_s
    assert told["health_check_period_s"] < defaults.stall_timeout_s  # else it is stuck unseen


def test_a_replica_logs_as_the_service_does(deploy: Deploy) -> None:
    """Ray's own line for each request is turned off."""
    told = deploy()
    assert told["logged"] is told["settings"]


def test_replicas_share_a_key_and_have_a_thread_for_each_of_their_cpus(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = deploy(cpus=3)
    settings = told["settings"]
    assert told["ray_actor_options"] == {"num_cpus": 3}
    assert len(settings.state_key.get_secret_value()) == 64
    assert settings.threads == 3
    monkeypatch.setenv("EVENKEEL_STATE_KEY", "0123456789abcdef" * 4)
    monkeypatch.setenv("EVENKEEL_THREADS", "2")
    settings = deploy(cpus=3)["settings"]
    assert settings.state_key.get_secret_value() == "0123456789abcdef" * 4
    assert settings.threads == 2


def test_replicas_come_and_go_between_the_least_and_the_most(deploy: Deploy) -> None:
    for chosen, bounds in (((2, 0), (2, 2)), ((2, 20), (2, 20)), ((3, 2), (3, 3))):
        scaling = deploy(replicas=chosen[0], most=chosen[1])["autoscaling_config"]
        assert (scaling["min_replicas"], scaling["max_replicas"]) == bounds
        assert scaling["initial_replicas"] == bounds[0]
        assert scaling["target_ongoing_requests"] == Settings().slots


def test_the_service_itself_refuses_what_is_too_much(deploy: Deploy) -> None:
    """Ray's own queue would say nothing, and not when to come again."""
    assert deploy()["max_ongoing_requests"] == Settings().max_connections


class _Models(list[Any]):
    """One model that has been attested, whatever came of it."""

    def __init__(self, *, ready: bool, stuck_s: float) -> None:
        super().__init__([SimpleNamespace(engine=SimpleNamespace(attested=threading.Event()))])
        self[0].engine.attested.set()
        self.ready, self._stuck_s = ready, stuck_s

    def stuck(self, limit_s: float) -> list[str]:
        return ["letters"] if self._stuck_s > limit_s else []


def test_a_replica_that_is_not_ready_or_stuck_is_replaced(deploy: Deploy) -> None:
    def ask(*, ready: bool, stuck_s: float) -> None:
        replica = deploy()["replica"]()
        replica.app = SimpleNamespace(
            state=SimpleNamespace(models=_Models(ready=ready, stuck_s=stuck_s))
        )
        asyncio.run(replica.check_health())

    ask(ready=True, stuck_s=30)
    with pytest.raises(RuntimeError, match="not ready"):
        ask(ready=False, stuck_s=0)
    with pytest.raises(RuntimeError, match="a run is stuck: letters"):
        ask(ready=True, stuck_s=30.1)


def test_a_replica_is_not_called_ready_while_one_of_its_models_proves_itself(
    deploy: Deploy,
) -> None:
    """The others are not asked to wait for it when they are replaced."""

    async def ask() -> None:
        replica, models = deploy()["replica"](), _Models(ready=False, stuck_s=0)
        slow = SimpleNamespace(engine=SimpleNamespace(attested=threading.Event()))
        models.append(slow)
        replica.app = SimpleNamespace(state=SimpleNamespace(models=models))
        asked = asyncio.ensure_future(replica.check_health())
        await asyncio.sleep(0)  # it looks
        await asyncio.sleep(0)
        assert not asked.done()
        models.ready = True
        slow.engine.attested.set()
        await asked

    asyncio.run(ask())


def test_strangers_are_served_only_where_that_is_meant(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_HOST", "0.0.0.0")
    with pytest.raises(ValueError, match="EVENKEEL_KEYS"):
        deploy()
    monkeypatch.setenv("EVENKEEL_OPEN", "1")
    deploy()


@pytest.mark.parametrize("rolls", [False, True])
@pytest.mark.parametrize("stopped", [False, True])
def test_ray_has_room_for_the_most_replicas_and_stops_when_it_is_told(
    deploy: Deploy, rolls: bool, stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here; what replaces those of a Ray that runs finds it, and does not stay. Lines are the
    service's own."""
    module: Any = sys.modules["deploy.ray_serve"]
    begun, started, ran, heard = (list[Any]() for _ in range(4))
    shut = list[str]()

    def run(_: object, **how: Any) -> None:
        ran.append(how)
        if stopped:
            raise KeyboardInterrupt

    told = ["--replicas", "2", "--most", "5", "--cpus", "3", *["--roll"] * rolls]
    monkeypatch.setattr(sys, "argv", ["ray_serve", *told])
    monkeypatch.setattr(module.ray, "init", lambda **how: begun.append(how), raising=False)
    monkeypatch.setattr(module.serve, "start", lambda **how: started.append(how), raising=False)
    monkeypatch.setattr(module.serve, "run", run, raising=False)
    monkeypatch.setattr(module.serve, "shutdown", lambda: shut.append("shut"), raising=False)
    monkeypatch.setattr(module.signal, "signal", lambda *given: heard.append(given))
    module.main()
    (how,), (http,) = begun, started
    where = {"address": "auto"} if rolls else {"num_cpus": 15, "include_dashboard": False}
    assert where.items() <= how.items()
    assert ("num_cpus" in how) is not rolls
    # Wherever it was started, replicas find the service.
    assert how["runtime_env"]["env_vars"]["PYTHONPATH"] == str(Path(__file__).parents[2])
    settings = Settings()
    assert http["http_options"] == {"host": settings.host, "port": settings.port}
    quiet = {"enable_access_log": False}
    assert (http["logging_config"], ran) == (
        quiet, [{"blocking": not rolls, "logging_config": quiet}]
    )  # fmt: skip
    assert heard == [(signal.SIGTERM, signal.default_int_handler)]
    assert shut == ["shut"] * stopped
