"""What compose starts is shut in, seen from this machine alone, and told what the service knows."""

import re
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from tests.deploy.composed import read

_ROOT = Path(__file__).parents[2]
_BASE = _ROOT / "docker-compose.yml"
_SCALE = _ROOT / "deploy" / "scale" / "docker-compose.yml"
_FILES = [_BASE, _ROOT / "docker-compose.gpu.yml", _SCALE]


def _services(path: Path) -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = read(path)["services"]
    return services


_EACH = pytest.mark.parametrize(
    ("name", "service"),
    [(name, service) for path in _FILES for name, service in _services(path).items()],
)


def test_a_container_may_as_little_as_it_needs() -> None:
    # What the second says of the service is laid over what the first does.
    for name, service in (_services(_SCALE) | _services(_BASE)).items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert set(service.get("cap_add", ())) <= {"FOWNER"}, name
        if service.get("network_mode") != "none":  # what ends by itself
            assert {"mem_limit", "pids_limit"} <= service.keys(), name


@_EACH
def test_a_port_is_published_on_this_machine_alone(name: str, service: dict[str, Any]) -> None:
    for port in service.get("ports") or ():
        published, _, inner = port.rpartition(":")
        assert published.startswith("${EVENKEEL_PUBLISH")
        assert published.endswith(f":-127.0.0.1:{inner}}}"), name


@_EACH
def test_settings_are_those_of_the_service_and_mean_something(
    monkeypatch: pytest.MonkeyPatch, name: str, service: dict[str, Any]
) -> None:
    environment = service.get("environment") or {}
    told = {key: str(value) for key, value in environment.items() if key.startswith("EVENKEEL_")}
    assert told.keys() <= {f"EVENKEEL_{setting.upper()}" for setting in Settings.model_fields}
    assert not told or name == "evenkeel"
    for key, value in told.items():
        if value != "None" and "$" not in value:  # else whoever starts it says so
            monkeypatch.setenv(key, value)
    Settings()


@_EACH
def test_an_image_is_built_of_what_there_is(name: str, service: dict[str, Any]) -> None:
    build = service.get("build", {})
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (_ROOT / "Dockerfile").read_text("utf-8"), re.M)
    assert build.get("target", stages[0]) in stages
    role = build.get("args", {}).get("ORT_EXTRA", "cpu")
    assert (_ROOT / "requirements" / f"{role}.lock").is_file()
    assert name != "evenkeel" or "image" not in service or service["image"] == f"evenkeel:{role}"


def test_what_a_container_waits_for_and_its_volumes_are_there() -> None:
    for path in _FILES:
        content = read(path)
        for name, service in content["services"].items():
            before = service.get("depends_on", {})
            assert set(before) <= content["services"].keys(), name
            if "evenkeel" in before:
                assert before["evenkeel"]["condition"] == "service_healthy", name
            for volume in service.get("volumes", ()):
                place = volume.removeprefix("${EVENKEEL_KEYS_FOLDER:-").partition(":")[0].strip("}")
                assert place.startswith("./") or place in content["volumes"], (name, volume)
