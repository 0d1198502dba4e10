"""What Ray Serve is told of the service; Ray itself is not wanted here."""

import sys
from collections.abc import Callable
from importlib import import_module
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
        told.update(options)
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
    monkeypatch.setattr(module.logs, "set_up", lambda settings: None)

    def deployed(**chosen: int) -> dict[str, Any]:
        module.application(module.Replicas(**chosen))
        return dict(told)

    return deployed


def test_a_replica_has_time_to_say_what_is_wrong_with_it(deploy: Deploy) -> None:
    """A run is called stuck by the service first, and what is under way may end."""
    told, defaults = deploy(), Settings()
    assert told["health_check_timeout_s"] > defaults.stall_timeout_s
    assert told["graceful_shutdown_timeout_s"] > defaults.drain_timeout_s


def test_replicas_share_a_key_and_have_a_thread_for_each_of_their_cpus(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = deploy(cpus=3)["settings"]
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


def test_strangers_are_served_only_where_that_is_meant(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_HOST", "0.0.0.0")
    with pytest.raises(ValueError, match="EVENKEEL_KEYS"):
        deploy()
    monkeypatch.setenv("EVENKEEL_OPEN", "1")
    deploy()
