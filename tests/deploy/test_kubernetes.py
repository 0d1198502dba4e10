"""The manifests are what Kubernetes takes, and ask of the service what it has."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.engine.runtime import _simd
from service.metrics import Metrics
from service.settings import Settings

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "deploy" / "kubernetes"
_FLEETS = ("avx512", "avx2", "sve", "neon")
# What all processors of an architecture that are meant have, and what some have.
_FLAGS = {"amd64": ({"fma"}, {"avx2", "avx512f"}), "arm64": ({"asimd"}, {"sve", "sve2", "sme"})}
_VERSIONS = ("1.30", "1.37")
_NOT_OF_KUBERNETES = {"kustomization.yaml", "prometheus-adapter.yaml"}
_MANIFESTS = [p for p in sorted(_FOLDER.rglob("*.yaml")) if p.name not in _NOT_OF_KUBERNETES]
_OURS = {"app.kubernetes.io/name": "evenkeel"}
_LAST_S = 7  # beyond delay and drain: sessions are told, then the last answers go out
_EACH_VERSION = pytest.mark.parametrize("version", _VERSIONS)

Manifest = dict[str, Any]


@pytest.fixture(scope="module", params=_FLEETS)
def fleet(request: pytest.FixtureRequest) -> dict[str, Manifest]:
    """What is applied, by kind."""
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl")
    run = ["kubectl", "kustomize", _FOLDER / request.param]
    told = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    found = list(yaml.safe_load_all(told))
    assert len({manifest["kind"] for manifest in found}) == len(found) == len(_MANIFESTS)
    return {manifest["kind"]: manifest for manifest in found}


def _validate(manifest: Manifest, version: str) -> None:
    """Raises for a field that is unknown, missing or of another type."""
    import kubernetes_validate  # here, because it takes seconds and other workers do without

    kubernetes_validate.validate(manifest, version, strict=True)


def _pod(fleet: dict[str, Manifest]) -> Manifest:
    return fleet["Deployment"]["spec"]["template"]["spec"]


def _container(fleet: dict[str, Manifest]) -> Manifest:
    (container,) = _pod(fleet)["containers"]
    return container


def _environment(fleet: dict[str, Manifest]) -> dict[str, str | None]:
    return {entry["name"]: entry.get("value") for entry in _container(fleet)["env"]}


@_EACH_VERSION
@pytest.mark.parametrize("path", _MANIFESTS, ids=lambda path: path.stem)
def test_each_manifest_is_what_kubernetes_takes(path: Path, version: str) -> None:
    _validate(yaml.safe_load(path.read_text("utf-8")), version)


@_EACH_VERSION
def test_what_is_applied_is_what_kubernetes_takes(fleet: dict[str, Manifest], version: str) -> None:
    for manifest in fleet.values():
        _validate(manifest, version)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("readinessProbe:", "readynessProbe:"),
        ("containerPort: 8000", "containerPort: http"),
        ("- name: evenkeel\n          image", "- image"),
        ("runAsNonRoot: true", 'runAsNonRoot: "yes"'),
    ],
)
def test_a_slip_of_the_pen_is_found(before: str, after: str) -> None:
    text = (_FOLDER / "base" / "deployment.yaml").read_text()
    assert before in text
    from kubernetes_validate import ValidationError

    with pytest.raises(ValidationError):
        _validate(yaml.safe_load(text.replace(before, after)), _VERSIONS[-1])


def test_everything_is_about_the_same_pods_and_no_others(fleet: dict[str, Manifest]) -> None:
    labels = fleet["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        fleet["Deployment"]["spec"]["selector"]["matchLabels"],
        fleet["Service"]["spec"]["selector"],
        fleet["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        fleet["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        (spread := _pod(fleet)["topologySpreadConstraints"][0])["labelSelector"]["matchLabels"],
    ]
    assert spread["matchLabelKeys"] == ["pod-template-hash"]  # nor those that an update replaces
    # Over nodes, where there are as many; elsewhere a replica on the same is better than none.
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == (
        "kubernetes.io/hostname", "ScheduleAnyway"
    )  # fmt: skip
    for selector in selectors:
        assert selector == labels
        assert selector.items() > _OURS.items()  # a fleet of its own vector unit
    target = fleet["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert target["name"] == fleet["Deployment"]["metadata"]["name"]
    assert "replicas" not in fleet["Deployment"]["spec"]


def test_only_clients_and_monitoring_come_in_and_nothing_goes_out(
    fleet: dict[str, Manifest],
) -> None:
    policy = fleet["NetworkPolicy"]["spec"]
    assert policy["egress"] == []
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (rule,) = policy["ingress"]
    clients, monitoring = rule["from"]
    wanted = {"key": "evenkeel/client", "operator": "In", "values": ["true"]}
    assert clients["podSelector"] == {"matchExpressions": [wanted]}
    assert clients["namespaceSelector"] == {}  # of any namespace
    name = {"kubernetes.io/metadata.name": "monitoring"}
    assert monitoring == {"namespaceSelector": {"matchLabels": name}}
    assert rule["ports"] == [{"protocol": "TCP", "port": "http"}]


def test_a_replica_has_whole_cpus_that_are_its_own(fleet: dict[str, Manifest]) -> None:
    resources = _container(fleet)["resources"]
    assert resources["requests"] == resources["limits"]  # else no pod gets exclusive cores
    assert resources["limits"]["cpu"].isdecimal()


def test_a_replica_may_as_little_as_the_image_needs(fleet: dict[str, Manifest]) -> None:
    pod, container = _pod(fleet), _container(fleet)
    user = re.findall(r"^USER (\d+):(\d+)$", (_ROOT / "Dockerfile").read_text(), re.M)[-1]
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == tuple(
        map(int, user)
    )
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_settings_are_those_of_the_service_and_leave_time_to_stop(
    fleet: dict[str, Manifest],
) -> None:
    environment = _environment(fleet)
    names = {f"EVENKEEL_{name.upper()}" for name in Settings.model_fields}
    assert environment.keys() <= names
    # Nor are others made of the names of services, which begin as settings do.
    assert _pod(fleet)["enableServiceLinks"] is False
    assert environment["EVENKEEL_STATE_KEY"] is None  # of the secret, and of every replica
    delay_s, drain_s = (
        int(environment[f"EVENKEEL_{name}_S"] or 0) for name in ("SHUTDOWN_DELAY", "DRAIN_TIMEOUT")
    )
    readiness = _container(fleet)["readinessProbe"]
    assert delay_s > readiness["periodSeconds"] * readiness["failureThreshold"]
    grace_s = _pod(fleet)["terminationGracePeriodSeconds"]
    assert grace_s >= delay_s + drain_s + _LAST_S
    mounts = {mount["mountPath"] for mount in _container(fleet)["volumeMounts"]}
    assert str(Path(environment["EVENKEEL_KEYS"] or "").parent) in mounts


def test_a_replica_reads_the_secret_that_the_guide_makes(fleet: dict[str, Manifest]) -> None:
    guide = (_ROOT / "docs" / "scaling.md").read_text("utf-8")
    (line,) = re.findall(r"kubectl create secret generic (.*)", guide)
    name, keys = line.split()[0], re.findall(r"--from-(?:literal|file)=([\w.-]+)", line)
    pod, container = _pod(fleet), _container(fleet)
    refs = {e["name"]: e["valueFrom"]["secretKeyRef"] for e in container["env"] if "valueFrom" in e}
    state_key, fallbacks = (refs.pop(f"EVENKEEL_STATE_KEY{more}") for more in ("", "_FALLBACKS"))
    assert not refs
    (secret,) = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
    (item,) = secret["items"]
    assert state_key["name"] == fallbacks["name"] == secret["secretName"] == name
    assert {state_key["key"], item["key"]} == set(keys)
    assert f"`{fallbacks['key']}` in the secret" in guide
    assert fallbacks["optional"]  # there while another key takes its place
    (mount,) = [m for m in container["volumeMounts"] if m["name"] == "keys"]
    assert f"{mount['mountPath']}/{item['path']}" == _environment(fleet)["EVENKEEL_KEYS"]
    # The user of the image is not whom Kubernetes gives the file to; the user's group is.
    assert secret["defaultMode"] & 0o047 == 0o040
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]


def test_a_replica_is_asked_scraped_and_let_in_where_it_listens(
    fleet: dict[str, Manifest],
) -> None:
    (port,) = _container(fleet)["ports"]
    assert port["containerPort"] == Settings.model_fields["port"].default
    (public,) = fleet["Service"]["spec"]["ports"]
    assert (public["targetPort"], public["port"]) == (port["name"], 80)
    told = fleet["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert told["prometheus.io/scrape"] == "true"
    assert int(told["prometheus.io/port"]) == port["containerPort"]


def test_what_has_to_be_ready_is_in_the_image(fleet: dict[str, Manifest]) -> None:
    required = (_environment(fleet)["EVENKEEL_REQUIRE"] or "").split(",")
    shipped = {path.parent.name for path in (_ROOT / "artifacts").glob("*/manifest.json")}
    assert required
    assert set(required) <= shipped
    (image,) = yaml.safe_load((_FOLDER / "base" / "kustomization.yaml").read_text())["images"]
    assert image["newTag"] == "cpu"  # the fleets are told apart by their vector units


def test_somebody_answers_while_replicas_and_nodes_are_exchanged(
    fleet: dict[str, Manifest],
) -> None:
    rolling = fleet["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert (rolling["maxUnavailable"], rolling["maxSurge"]) == (0, 1)
    budget, scaler = (
        fleet[kind]["spec"] for kind in ("PodDisruptionBudget", "HorizontalPodAutoscaler")
    )
    assert scaler["minReplicas"] > budget["maxUnavailable"] >= 1  # 0, and no node can be drained
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    down, up = (scaler["behavior"][f"scale{way}"] for way in ("Down", "Up"))
    assert down["stabilizationWindowSeconds"] >= 300
    # At most one a minute, as the guide says: sessions end with their replica.
    (most,) = down["policies"]
    assert most == {"type": "Pods", "value": 1, "periodSeconds": 60}
    # More are there before anybody is called: deploy/observe/alerts.yml.
    assert scaler["maxReplicas"] > scaler["minReplicas"]
    (soonest,) = up["policies"]
    assert soonest["value"] >= 100
    assert up["stabilizationWindowSeconds"] + soonest["periodSeconds"] <= 60


def test_a_replica_has_time_to_start_and_room_for_what_it_holds(fleet: dict[str, Manifest]) -> None:
    startup = _container(fleet)["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 60
    assert _bytes(_container(fleet)["resources"]["limits"]["memory"]) >= 2**30
    (room,) = [volume["emptyDir"] for volume in _pod(fleet)["volumes"] if "emptyDir" in volume]
    assert _bytes(room["sizeLimit"]) >= 2**24
    mounted = {mount["name"]: mount["mountPath"] for mount in _container(fleet)["volumeMounts"]}
    assert mounted["tmp"] == "/tmp"


def _bytes(quantity: str) -> int:
    units = {"": 1, "Mi": 2**20, "Gi": 2**30}
    number, unit = re.fullmatch(r"(\d+)(\w*)", quantity).groups()  # type: ignore[union-attr]
    return int(number) * units[unit]


def test_probes_ask_what_they_mean(fleet: dict[str, Manifest]) -> None:
    asked = {
        name: _container(fleet)[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "readiness", "liveness")
    }
    limits = {name: _container(fleet)[f"{name}Probe"].get("timeoutSeconds", 1) for name in asked}
    assert limits["readiness"] >= 2  # a replica that has much to do takes its time to answer
    assert limits["liveness"] >= 5
    assert asked == {"startup": "/livez", "readiness": "/readyz", "liveness": "/livez"}


def test_the_autoscaler_follows_figures_of_the_service(fleet: dict[str, Manifest]) -> None:
    adapter = yaml.safe_load((_FOLDER / "prometheus-adapter.yaml").read_text())
    told = {metric.name for metric in Metrics().registry.collect()}
    known = set()
    for rule in adapter["rules"]["custom"]:
        series, _, labels = rule["seriesQuery"].partition("{")
        assert labels == 'namespace!="",pod!=""}', series  # or they are of no pod to be scaled
        assert series.removesuffix("_bucket") in told
        known.add(rule.get("name", {}).get("as", series))
    metrics = fleet["HorizontalPodAutoscaler"]["spec"]["metrics"]
    targets = {m["pods"]["metric"]["name"]: m["pods"]["target"] for m in metrics}
    assert targets.keys() == known
    # Seconds; without its unit the figure would be minutes.
    assert targets["evenkeel_first_byte_p99_seconds"]["averageValue"] == "200m"
    waiting, first_byte = adapter["rules"]["custom"]
    assert waiting["metricsQuery"].startswith("sum(<<.Series>>")
    assert first_byte["seriesQuery"].startswith("evenkeel_time_to_first_token_seconds_bucket{")
    assert first_byte["metricsQuery"].startswith("histogram_quantile(0.99, sum(rate(")
    assert "by (le, <<.GroupBy>>)" in first_byte["metricsQuery"]
    # Of fewer than two scrapes there is no rate, and Prometheus makes one a minute by default; an
    # autoscaler that misses one of its figures removes no replica.
    (minutes,) = re.findall(r"\[(\d+)m\]", first_byte["metricsQuery"])
    assert int(minutes) >= 2


def test_a_fleet_rounds_one_way(
    fleet: dict[str, Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the nodes that it may have, the service calls its runtime the same there."""
    affinity = _pod(fleet)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    wanted = {e["key"].rpartition(".")[2]: e["operator"] for e in term["matchExpressions"]}
    values = {e["key"].rpartition(".")[2]: e.get("values") for e in term["matchExpressions"]}
    (architecture,) = values.pop("io/arch")
    assert wanted.pop("io/arch") == "In"
    assert all(said in (["true"], None) for said in values.values())
    assert "In" in wanted.values()  # a node without labels is no node without SVE
    always, others = _FLAGS[architecture]
    least = always | {flag.lower() for flag, operator in wanted.items() if operator == "In"}
    most = {flag for flag in least | others if wanted.get(flag.upper()) != "DoesNotExist"}
    unit = fleet["Deployment"]["metadata"]["labels"]["evenkeel/vector-unit"]
    for flags in least, most:
        monkeypatch.setattr(Path, "read_text", lambda *_, flags=flags: " ".join(flags))
        assert _simd.__wrapped__() == unit
