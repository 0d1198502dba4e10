"""The alerts say what is wrong, how bad that is and where to read on, and go by the figures that
the service and its autoscaler go by. What they ask for is there: tests/service/test_metrics.py."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import service.errors
from service.metrics import Metrics
from service.settings import Settings

_ROOT = Path(__file__).parents[2]
_OBSERVE = _ROOT / "deploy" / "observe"
_RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((_OBSERVE / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}
_EACH = pytest.mark.parametrize("rule", _RULES.values(), ids=_RULES)

# Of what it is a figure of: one that is well yet, and one that is not.
_BORDERS = [
    ("EvenkeelDown", 1, 0),
    ("EvenkeelReplicaNotReady", 1, 0),
    ("EvenkeelStuck", 30, 30.1),
    ("EvenkeelNotAttested", 1, 0),
    ("EvenkeelModelFailed", 0, 1),
    ("EvenkeelRunFailed", 0, 1),
    ("EvenkeelErrors", 0.01, 0.02),
    ("EvenkeelRefuses", 0.05, 0.06),
    ("EvenkeelSlowFirstByte", 0.25, 0.3),
    ("EvenkeelRestarts", 1, 2),
]


def _section(name: str, heading: str) -> str:
    """What a document says below a heading, up to the next one."""
    text = (_ROOT / "docs" / name).read_text("utf-8")
    (_, found) = re.split(rf"^#+ {heading}\n", text, flags=re.M)
    return re.split(r"^#+ ", found, flags=re.M)[0]


def _codes(alert: str) -> set[str]:
    (codes,) = re.findall(r'code=~?"(.*?)"', _RULES[alert]["expr"])
    return set(codes.split("|"))


def _threshold(alert: str) -> float:
    return float(_RULES[alert]["expr"].rpartition(" > ")[2])


@_EACH
def test_an_alert_says_what_is_wrong_how_bad_that_is_and_where_to_read_on(
    rule: dict[str, Any],
) -> None:
    assert re.fullmatch(r"[1-9]\d*[sm]", rule["for"])  # not of a single scrape
    severity, said = rule["labels"]["severity"], rule["annotations"]
    assert severity in ("critical", "warning")
    assert said["summary"]
    assert said["runbook"] == "docs/operations.md#alerts"
    rows = re.findall(
        r"^\| `(\w+)`, (\w+) \| .+ \| .+ \|$", _section("operations.md", "Alerts"), re.M
    )
    assert rows.count((rule["alert"], severity)) == 1
    assert len(rows) == len(_RULES)


@_EACH
def test_an_alert_waits_as_long_as_the_guide_says(rule: dict[str, Any]) -> None:
    """A minute at most where it does not say."""
    section = _section("operations.md", "Alerts")
    (when,) = re.findall(rf"^\| `{rule['alert']}`, \w+ \| (.+?) \|", section, re.M)
    said = re.search(r"for (a|two|five|ten) minute|, for (two) minutes", when)
    minutes = {"a": "1m", "two": "2m", "five": "5m", "ten": "10m"}
    told = {minutes[said[1] or said[2]]} if said else {"30s", "1m"}
    assert rule["for"] in told


def test_what_every_program_tells_is_asked_of_the_service_alone() -> None:
    for alert, rule in _RULES.items():
        for labels in re.findall(r"\b(?:up|process_\w+)\b(\{.*?\})?", rule["expr"]):
            assert labels == '{job="evenkeel"}', alert


def test_every_alert_is_tried_where_it_is_sent_and_where_it_is_not() -> None:
    """What Prometheus makes of that is tested where there is its promtool."""
    cases = yaml.safe_load((_ROOT / "tests" / "deploy" / "alerts.yml").read_text())["tests"]
    asked = [case for each in cases for case in each["alert_rule_test"]]
    tried = {(case["alertname"], bool(case.get("exp_alerts"))) for case in asked}
    assert tried == {(alert, sent) for alert in _RULES for sent in (True, False)}


@pytest.mark.parametrize(("alert", "silent", "sent"), _BORDERS)
def test_an_alert_is_sent_on_one_side_of_its_border_alone(
    alert: str, silent: float, sent: float
) -> None:
    """What each is a figure of, the guide says; a model that has not replayed anything is NaN."""
    assert {each for each, *_ in _BORDERS} == _RULES.keys()
    *_, operator, border = _RULES[alert]["expr"].split()
    holds = {"==": lambda x: x == float(border), ">": lambda x: x > float(border)}[operator]
    assert [holds(figure) for figure in (silent, sent, float("nan"))] == [False, True, False]


def test_an_alert_is_looked_at_before_it_should_be_sent() -> None:
    asks = yaml.safe_load((_OBSERVE / "prometheus.yml").read_text())["global"]
    every_s = int(re.fullmatch(r"(\d+)s", asks["evaluation_interval"])[1])  # type: ignore[index]
    waits = [rule["for"] for rule in _RULES.values()]
    assert every_s * 2 <= min(int(w[:-1]) * {"s": 1, "m": 60}[w[-1]] for w in waits)


def test_a_run_is_stuck_where_livez_says_so() -> None:
    assert _threshold("EvenkeelStuck") == Settings.model_fields["stall_timeout_s"].default


def test_a_first_byte_is_late_at_a_limit_of_the_buckets_and_where_replicas_were_added() -> None:
    """Between two limits Prometheus makes up a quantile: all may take 110 ms where it says 240."""
    metrics = Metrics()
    metrics.first_byte_s.labels("it").observe(1)
    (family,) = metrics.first_byte_s.collect()
    limits = {float(s.labels["le"]) for s in family.samples if "le" in s.labels}
    assert _threshold("EvenkeelSlowFirstByte") in limits
    scaler = yaml.safe_load((_ROOT / "deploy/kubernetes/base/autoscaler.yaml").read_text())
    targets = {m["pods"]["metric"]["name"]: m["pods"]["target"] for m in scaler["spec"]["metrics"]}
    most = targets["evenkeel_first_byte_p99_seconds"]["averageValue"]
    assert _threshold("EvenkeelSlowFirstByte") > int(most.removesuffix("m")) / 1000


def test_errors_are_those_that_no_caller_is_to_blame_for_and_refusals_are_no_errors() -> None:
    kinds = [kind for kind in vars(service.errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in kinds if issubclass(kind, service.errors.ServiceError)]
    assert _codes("EvenkeelErrors") == {k.code or k.type for k in kinds if k.status == 500}
    assert _codes("EvenkeelRefuses") == {service.errors.Overloaded.code}


@pytest.mark.parametrize("alert", ["EvenkeelErrors", "EvenkeelRefuses"])
def test_a_share_of_requests_is_that_of_the_guide(alert: str) -> None:
    (row,) = re.findall(rf"^\| `{alert}`, .*$", _section("operations.md", "Alerts"), re.M)
    (most,) = re.findall(r"more than (\d+)% of requests", row)
    assert _threshold(alert) == int(most) / 100
    for series in re.findall(r"evenkeel_http_requests_total\{(.*?)\}", _RULES[alert]["expr"]):
        assert 'path=~"/v1/.+|other"' in series  # probes are no requests


def test_prometheus_asks_the_service_of_compose_by_the_name_that_alerts_look_for() -> None:
    asks = yaml.safe_load((_OBSERVE / "prometheus.yml").read_text())
    (job,) = asks["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    compose = yaml.safe_load((_ROOT / "docker-compose.yml").read_text())
    (port,) = compose["services"]["evenkeel"]["ports"]
    assert found["names"] == ["evenkeel"]  # each replica by its own address
    assert (found["type"], str(found["port"])) == ("A", port.rpartition(":")[2])
    jobs = re.findall(r'job="(.*?)"', "".join(rule["expr"] for rule in _RULES.values()))
    assert set(jobs) == {job["job_name"]}
    timeout_s, interval_s = (
        int(asks["global"][name].removesuffix("s"))
        for name in ("scrape_timeout", "scrape_interval")
    )
    assert timeout_s <= interval_s  # else Prometheus does not start


def test_prometheus_finds_the_alerts_where_compose_puts_them() -> None:
    (name,) = yaml.safe_load((_OBSERVE / "prometheus.yml").read_text())["rule_files"]
    compose = yaml.safe_load((_ROOT / "docker-compose.yml").read_text())
    volumes = compose["services"]["prometheus"]["volumes"]
    for file in (name, "prometheus.yml"):  # beside each other, as the one names the other
        assert f"./deploy/observe/{file}:/etc/prometheus/{file}:ro" in volumes


def test_kubernetes_is_given_the_same_alerts_by_the_line_of_the_guide() -> None:
    guide = _section("scaling.md", "Kubernetes")
    (made,) = re.findall(r"^(\{ .*alerts\.yml.*) \| kubectl apply -f -$", guide, re.M)
    run = subprocess.run(["sh", "-c", made], cwd=_ROOT, capture_output=True, text=True, check=True)
    manifest = yaml.safe_load(run.stdout)
    kind = (manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"])
    assert kind == ("monitoring.coreos.com/v1", "PrometheusRule", "evenkeel")
    assert manifest["spec"] == yaml.safe_load((_OBSERVE / "alerts.yml").read_text())


@pytest.mark.parametrize(
    "asked",
    ["check config deploy/observe/prometheus.yml", "test rules tests/deploy/alerts.yml"],
)
def test_prometheus_takes_its_files_and_alerts_when_it_should(asked: str) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool: it comes with Debian's package prometheus")
    run = subprocess.run(["promtool", *asked.split()], cwd=_ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
