"""What compose starts is shut in, seen from this machine alone, and told what the service knows."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from service.http.gate import _MOST_UNREAD_BYTES
from service.http.guard import hosts_of
from service.settings import Settings
from tests.deploy.composed import read

_ROOT = Path(__file__).parents[2]
_BASE = _ROOT / "docker-compose.yml"
_SCALE = _ROOT / "deploy" / "scale" / "docker-compose.yml"
# Grafana's settings: who may look, who may log in, and whom it asks for what.
_OF_A_PICTURE = {
    "ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
    "ANALYTICS_CHECK_FOR_UPDATES": "false",
    "ANALYTICS_REPORTING_ENABLED": "false",
    "AUTH_ANONYMOUS_ENABLED": "true",
    "AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
    "AUTH_BASIC_ENABLED": "false",
    "AUTH_DISABLE_LOGIN_FORM": "true",
    "PLUGINS_PREINSTALL_DISABLED": "true",
    "SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "true",
}
_GRAFANA = _ROOT / "deploy" / "observe" / "grafana"
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


def test_what_goes_on_is_there_again_when_the_machine_is() -> None:
    for path in (_BASE, _SCALE):
        for name, service in _services(path).items():
            ends = name in ("load", "load-report")  # by itself
            if "image" in service and not ends:
                assert service["restart"] == "unless-stopped", name


def test_what_a_container_logs_does_not_fill_the_disk() -> None:
    """Docker itself keeps all of it."""
    for name, service in (_services(_SCALE) | _services(_BASE)).items():
        told = service["logging"]
        assert told["driver"] == "json-file", name
        most_mb = int(told["options"]["max-size"].removesuffix("m"))
        assert most_mb * int(told["options"]["max-file"]) <= 100, name


def test_a_replica_has_room_for_as_many_bodies_as_there_may_be_connections() -> None:
    """Strangers who hold so many take its memory up to there, and no more of it."""
    fields = Settings.model_fields
    bodies = fields["max_connections"].default * fields["max_body_bytes"].default
    deployment = yaml.safe_load((_ROOT / "deploy/kubernetes/base/deployment.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    limits = _services(_BASE)["evenkeel"]["mem_limit"], container["resources"]["limits"]["memory"]
    for limit in limits:
        gib = int(re.fullmatch(r"(\d+)(g|Gi)", limit)[1])  # type: ignore[index]
        # And for what they are read into, and for answers that nobody reads.
        assert gib * 2**30 > 1.25 * bodies + 512 * 2**20 + _MOST_UNREAD_BYTES


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


def test_what_compose_reads_is_told_with_what_it_is_unless_set() -> None:
    settings = {f"EVENKEEL_{setting.upper()}" for setting in Settings.model_fields}
    text = "".join(path.read_text() for path in _FILES)
    asked = dict(re.findall(r"\$\{(EVENKEEL_\w+):-(.*?)\}", text))
    environment = _services(_BASE)["evenkeel"]["environment"]
    passed = {name for name, value in environment.items() if value is None or "${" in str(value)}
    guide = (_ROOT / "docs" / "commands.md").read_text()
    (sentence,) = re.findall(r"^Docker Compose passes on (.*?)\. Write", guide, re.M | re.S)
    assert set(re.findall(r"`(\w+)`", sentence)) == passed <= settings
    own = guide.partition("Compose itself also reads:")[2]
    told = dict(re.findall(r"`(EVENKEEL_\w+)` \((`?[^`(),]+`?)[,)]", own))
    named = {name: usual.strip("`") for name, usual in told.items()}
    assert named == {n: u for n, u in asked.items() if n not in settings} | {
        "EVENKEEL_KEYS_FOLDER": "a volume"
    }


def test_without_a_word_of_anybody_it_starts_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A container listens everywhere, which the service takes without keys only where it is told
    that this is meant."""
    for key, value in _services(_BASE)["evenkeel"]["environment"].items():
        if value is not None:
            monkeypatch.setenv(key, re.sub(r"\$\{\w+:-(.*)\}", r"\1", str(value)))
    assert Settings().open


def test_a_page_whose_name_was_made_to_point_at_this_machine_may_not_use_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To a container everybody comes from elsewhere; a browser here would ask it for any page."""
    services = _services(_BASE)
    told = services["evenkeel"]["environment"]["EVENKEEL_ALLOWED_HOSTS"]
    monkeypatch.setenv("EVENKEEL_ALLOWED_HOSTS", re.sub(r"\$\{\w+:-(.*)\}", r"\1", told))
    (offered,) = [each for each in services["load"]["command"] if each.startswith("--host=")]
    within = str(urlsplit(offered.removeprefix("--host=")).hostname)
    for address in ("0.0.0.0", "::"):  # which containers listen on
        assert hosts_of(address, Settings().allowed_hosts) == hosts_of("localhost", ()) | {within}


def test_the_folder_of_reports_is_opened_for_whoever_writes_there() -> None:
    """Its owner is whoever made it, which no other may change without that right, not even root."""
    opens, load = (_services(_BASE)[name] for name in ("load-report", "load"))
    assert opens["volumes"] == load["volumes"] == ["./load-report:/report"]
    assert opens["entrypoint"] == ["chmod", "777", "/report"]
    assert (opens["user"], opens["cap_add"]) == ("root", ["FOWNER"])
    assert load["depends_on"]["load-report"]["condition"] == "service_completed_successfully"
    assert "--html=/report/report.html" in load["command"]


def test_the_picture_is_to_be_looked_at_and_reports_to_nobody() -> None:
    told = _services(_BASE)["grafana"]["environment"]
    assert {name: told[f"GF_{name}"] for name in _OF_A_PICTURE} == _OF_A_PICTURE


@_EACH
def test_an_image_is_built_of_what_there_is(name: str, service: dict[str, Any]) -> None:
    build = service.get("build", {})
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (_ROOT / "Dockerfile").read_text("utf-8"), re.M)
    assert build.get("target", stages[0]) in stages
    role = build.get("args", {}).get("ORT_EXTRA", "cpu")
    assert (_ROOT / "requirements" / f"{role}.lock").is_file()
    assert name != "evenkeel" or "image" not in service or service["image"] == f"evenkeel:{role}"


def test_what_is_to_stay_lies_in_a_volume_and_what_is_read_is_not_written() -> None:
    services = _services(_BASE)
    mounted = {
        name: [volume.split(":")[-3:] for volume in service.get("volumes", ())]
        for name, service in services.items()
    }
    assert ["prometheus", "/prometheus"] in mounted["prometheus"]
    assert "--storage.tsdb.path=/prometheus" in services["prometheus"]["command"]
    assert ["grafana", "/var/lib/grafana"] in mounted["grafana"]
    assert [mount[-1] for mount in mounted["evenkeel"]] == ["ro"]  # the keys
    for path in _FILES:
        for name, service in _services(path).items():
            for volume in service.get("volumes", ()):
                assert volume.endswith(":ro") or not volume.startswith("./deploy/"), name
    assert "--storage.tsdb.retention.time=7d" in services["prometheus"]["command"]  # a week


def test_grafana_finds_its_picture_where_compose_puts_it() -> None:
    grafana = _services(_BASE)["grafana"]
    provider = yaml.safe_load((_GRAFANA / "provisioning/dashboards/evenkeel.yml").read_text())
    (folder,) = [each["options"]["path"] for each in provider["providers"]]
    assert f"./deploy/observe/grafana/dashboards:{folder}:ro" in grafana["volumes"]
    assert (
        "./deploy/observe/grafana/provisioning:/etc/grafana/provisioning:ro" in grafana["volumes"]
    )
    sources = yaml.safe_load((_GRAFANA / "provisioning/datasources/prometheus.yml").read_text())
    (source,) = sources["datasources"]
    assert urlsplit(source["url"]).hostname in grafana["depends_on"]
    scraped = yaml.safe_load((_GRAFANA.parent / "prometheus.yml").read_text())["global"]
    assert source["jsonData"]["timeInterval"] == scraped["scrape_interval"]
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (str(home.parent), (_GRAFANA / "dashboards" / home.name).is_file()) == (folder, True)


def test_a_container_for_a_gpu_asks_for_one_and_does_not_start_without() -> None:
    service = _services(_ROOT / "docker-compose.gpu.yml")["evenkeel"]
    assert service["environment"]["EVENKEEL_PROVIDER"] == "cuda"
    limits = (service["mem_limit"], _services(_BASE)["evenkeel"]["mem_limit"])
    gib, without = (int(limit.removesuffix("g")) for limit in limits)
    assert gib >= without + 6  # the libraries of CUDA
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}


def test_all_users_of_a_load_begin_at_once_and_end_when_that_is_told() -> None:
    asked = dict(each.split("=", 1) for each in _services(_BASE)["load"]["command"] if "=" in each)
    assert asked["--users"] == asked["--spawn-rate"] == "${EVENKEEL_LOAD_USERS:-32}"
    assert asked["--run-time"] == "${EVENKEEL_LOAD_TIME:-60s}"


def test_a_load_is_offered_to_the_service_where_it_listens() -> None:
    services = _services(_BASE)
    (asked,) = [each for each in services["load"]["command"] if each.startswith("--host=")]
    place = urlsplit(asked.removeprefix("--host="))
    (port,) = services["evenkeel"]["ports"]
    assert (place.scheme, place.hostname) == ("http", "evenkeel")
    assert str(place.port) == port.rpartition(":")[2]


def test_the_service_starts_alone_unless_more_is_asked_for() -> None:
    """A load that nobody asked for would take what callers want."""
    services = _services(_BASE)
    profiles = {name: service.get("profiles", []) for name, service in services.items()}
    assert [name for name, of in profiles.items() if not of] == ["evenkeel"]
    offered = set(re.findall(r"--profile (\w+)", (_ROOT / "README.md").read_text("utf-8")))
    assert {of for each in profiles.values() for of in each} == offered
    for name, service in services.items():
        for before in service.get("depends_on", {}):
            assert profiles[before] in ([], profiles[name]), name


def test_what_a_check_looks_for_in_a_container_is_what_it_is_given() -> None:
    """`make docker-check` runs it inside, where there is Docker."""
    looks = (_ROOT / "tests" / "deploy" / "inside.py").read_text("utf-8")
    service = _services(_BASE)["evenkeel"]
    ((gib, pids),) = re.findall(r'str\((\d+) << 30\)\),\n.*\(pids, "(\d+)"\)', looks)
    assert (service["mem_limit"], str(service["pids_limit"])) == (f"{gib}g", pids)
    (writable,) = re.findall(r"\],\n *\[(.*)\],\n", looks)
    assert [place.strip('"') for place in writable.split(", ")] == service["tmpfs"]


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
