"""What Prometheus is told, and what the dashboard and the alerts make of it."""

import json
import math
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import service.errors
from service.app import create_app
from service.metrics import VLLM_NAMES, Metrics, Work
from tests.service.serving import Service, settings
from tests.service.writing import online

_ROOT = Path(__file__).parents[2]
_OBSERVE = _ROOT / "deploy" / "observe"
_CODES = {kind.code for kind in vars(service.errors).values() if hasattr(kind, "code")}


@pytest.fixture(scope="module")
def told(scan: Service) -> str:
    """`/metrics` of a service that has written and refused."""
    scan.complete(max_tokens=5, prompt="ab")
    scan.post(max_tokens=-1)
    scan.client.get("/nowhere")
    return str(scan.client.get("/metrics").text)


def _samples(told: str, name: str) -> dict[tuple[str, ...], float]:
    """The values of all samples of that name or of its parts, by part and values of labels."""
    return {
        (s.name.removeprefix(name), *sorted(s.labels.values())): s.value
        for family in text_string_to_metric_families(told)
        for s in family.samples
        if re.fullmatch(rf"{re.escape(name)}(_total|_bucket|_sum|_count|_created)?", s.name)
    }


@pytest.mark.parametrize("ours", VLLM_NAMES)
def test_what_vllm_counts_is_told_under_its_name(scan: Service, told: str, ours: str) -> None:
    (family,) = getattr(scan.app.state.metrics, ours).collect()
    theirs = _samples(told, VLLM_NAMES[ours])
    assert theirs
    assert theirs == _samples(told, family.name)


def test_vllms_names_mean_what_they_do_there() -> None:
    metrics = Metrics()
    engine = metrics.of_engine("it")
    engine.running.set(4)
    engine.waiting.set(6)
    metrics.count(Work("it", "stop", 3, 5, 1.0, 1.5, 3.0, 15.0))
    expected = {
        "num_requests_running": 4,
        "num_requests_waiting": 6,
        "prompt_tokens_total": 3,
        "generation_tokens_total": 5,
        "request_success_total": 1,
        "time_to_first_token_seconds_sum": 2,
        "e2e_request_latency_seconds_sum": 14,
        "request_time_per_output_token_seconds_sum": 3,
        "request_queue_time_seconds_sum": 0.5,
    }
    samples = [s for family in metrics.registry.collect() for s in family.samples]
    told = {s.name: s.value for s in samples if s.name.startswith("vllm:")}
    assert {name: told.get(f"vllm:{name}") for name in expected} == expected
    assert len(VLLM_NAMES) == len(expected)


def test_vllms_labels_are_its_own(told: str) -> None:
    assert 'vllm:request_success_total{finished_reason="length",model_name="letters"}' in told
    assert 'vllm:num_requests_running{model_name="letters"} 0.0' in told


def test_verdicts_versions_and_the_process_are_told(scan: Service, told: str) -> None:
    verdict = scan.app.state.models["letters"].verdict
    values = {s: v for s, _, v in (line.rpartition(" ") for line in told.splitlines())}
    assert values["evenkeel_ready"] == "1.0"
    assert values['evenkeel_model_ready{model="letters"}'] == "1.0"
    assert values['evenkeel_attestation_ok{model="letters"}'] == "1.0"
    assert float(values['evenkeel_attestation_max_error{model="letters"}']) == verdict.max_error
    assert float(values['evenkeel_attestation_bound{model="letters"}']) == verdict.bound
    assert float(values["process_resident_memory_bytes"]) > 2**20
    (build,) = (labels for labels in values if labels.startswith("evenkeel_build_info{"))
    versions = (onnxruntime.__version__, platform.python_version(), scan.app.version)
    assert re.findall(r'(\w+)="([^"]*)"', build) == [
        *zip(("onnxruntime", "python", "version"), versions, strict=True)
    ]
    assert 'provider="cpu"' in told
    assert 'threads="1"' in told
    assert f'digest="{scan.app.state.models["letters"].artifact.digest}"' in told  # all of it


def test_times_are_from_the_arrival_and_each_byte_after_the_first_has_its_share() -> None:
    metrics = Metrics()
    metrics.count(Work("it", "stop", 3, 5, 1.0, 1.5, 3.0, 11.0))
    expected = {"queue": 0.5, "time_to_first_token": 2.0, "request": 10.0, "inter_token": 2.0}
    for name, seconds in expected.items():
        name = f"evenkeel_{name}_seconds_sum"
        assert metrics.registry.get_sample_value(name, {"model": "it"}) == seconds, name


@pytest.mark.parametrize(("reason", "ended"), [("stop", 1), ("abort", 0), ("error", 0)])
def test_what_came_to_no_end_of_its_own_does_not_say_how_long_that_takes(
    reason: str, ended: int
) -> None:
    metrics = Metrics()
    metrics.count(Work("it", reason, 3, 1, 1.0, 1.5, 3.0, 11.0))  # one byte, after which came none
    expected = {"queue": 1, "time_to_first_token": 1, "request": ended, "inter_token": 0}
    for name, count in expected.items():
        name = f"evenkeel_{name}_seconds_count"
        assert (metrics.registry.get_sample_value(name, {"model": "it"}) or 0) == count, name


def test_two_engines_of_a_model_have_each_its_share_of_what_runs() -> None:
    """As while a model drains that another has taken the place of."""
    metrics = Metrics()
    old, new = metrics.of_engine("it"), metrics.of_engine("it")
    seen = []
    for engine, running in ((old, 5), (new, 2), (old, 4), (new, 3), (old, 0)):
        engine.running.set(running)
        engine.waiting.set(2 * running)
        seen.append(
            [
                metrics.registry.get_sample_value(f"evenkeel_requests_{name}", {"model": "it"})
                for name in ("running", "waiting")
            ]
        )
    assert seen == [[5, 10], [7, 14], [6, 12], [7, 14], [3, 6]]


def test_a_service_that_has_not_proved_itself_says_so(artifacts: Path) -> None:
    registry = create_app(settings(artifacts)).state.metrics.registry  # its models never start
    value = registry.get_sample_value
    assert value("evenkeel_ready") == value("evenkeel_model_ready", {"model": "letters"}) == 0
    assert math.isnan(value("evenkeel_attestation_ok", {"model": "letters"}))


_ENDINGS = {"counter": "_total", "info": "_info"}  # of a series, by the type of its family


def test_every_series_is_told_and_none_that_is_gone(artifacts: Path) -> None:
    metrics = create_app(settings(artifacts)).state.metrics
    theirs = {
        getattr(metrics, ours).describe()[0].name: name.removeprefix("vllm:")
        for ours, name in VLLM_NAMES.items()
    }
    found = {}
    for family in metrics.registry.collect():
        if family.name.startswith("evenkeel_"):
            ending = _ENDINGS.get(family.type, "")
            vllms = theirs.get(family.name)
            found[f"{family.name}{ending}"] = f"{vllms}{ending}" if vllms else ""
    document = (_ROOT / "docs" / "operations.md").read_text("utf-8")
    table = document.partition("| series, after `evenkeel_` |")[2].partition("\n\n")[0]
    told = {
        f"evenkeel_{name}": vllms
        for series, vllms in re.findall(r"^\| (`.+?`) \| .* \|(?: `(\w+)`)? \|$", table, re.M)
        for name in re.findall(r"\w+", series)
    }
    assert told == found


def _board() -> dict[str, Any]:
    board: dict[str, Any] = json.loads((_OBSERVE / "grafana/dashboards/evenkeel.json").read_text())
    return board


def _expressions() -> Iterator[tuple[str, str]]:
    board = _board()
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    yield "variable", board["templating"]["list"][0]["query"]["query"]


def _alerts() -> Iterator[tuple[str, str]]:
    for group in yaml.safe_load((_OBSERVE / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


@pytest.mark.parametrize(("asking", "expression"), [*_expressions(), *_alerts()])
def test_the_dashboard_and_the_alerts_ask_for_series_that_there_are(
    told: str, asking: str, expression: str
) -> None:
    samples = [s for f in text_string_to_metric_families(told) for s in f.samples]
    names = re.findall(r"\b((?:evenkeel|process)_\w+)(?:\{(.*?)\})?", expression)
    assert names
    for name, matchers in names:
        of_name = [s for s in samples if s.name == name]
        assert of_name, name
        for label, value in re.findall(r'(\w+)=~?"([^$"]+)"', matchers):
            # What a job is called is said by whoever scrapes; few errors have happened here.
            values = {s.labels.get(label) for s in of_name} if label != "job" else {"evenkeel"}
            values |= _CODES if label == "code" else set()
            assert any(re.fullmatch(value, v or "") for v in values), (name, label)


def test_the_dashboard_shows_what_its_names_say() -> None:
    for panel in _board()["panels"]:
        for target in panel["targets"]:
            asked, name = target["expr"], target["legendFormat"]
            for quantile in re.findall(r"histogram_quantile\((.*?), sum by \(le, model\)", asked):
                assert name.startswith(f"p{100 * float(quantile):g} "), name
            assert asked.count("histogram_quantile(") == asked.count("sum by (le, model)"), name
            for counter in re.findall(r"\w+_total\b", asked):  # as it grows, not since its start
                assert re.search(rf"(rate|increase)\({counter}", asked), name
            if bound := re.search(r'le="(.*?)"', asked):
                number, unit = re.search(r"within (\d+) (\w+)", name).groups()  # type: ignore[union-attr]
                assert float(bound[1]) == int(number) * {"ms": 1e-3, "s": 1.0}[unit], name
            if panel["type"] == "stat" and "sum" not in asked:  # the worst replica and model
                worst = "min" if panel["title"] in ("Ready", "Attested") else "max"
                assert re.match(rf"{worst}( by \(model\) )?\(", asked), name
            if not re.match(r"sum|min|max|histogram_quantile", asked):  # a line of each replica
                assert name.endswith(" {{instance}}"), name


def test_a_replica_that_answers_no_scrape_is_not_shown_as_ready() -> None:
    """Of such a one Prometheus has nothing but that it is not up."""
    assert dict(_expressions())["Ready"] == 'min(evenkeel_ready or up{job="evenkeel"})'


def _unit_of(expression: str) -> str:
    """What the figures of an expression are of."""
    if " / evenkeel_attestation_bound" in expression:
        return "percentunit"
    if re.match(r"sum .*rate\(evenkeel_\w*request", expression):
        return "reqps"
    if re.match(r"histogram_quantile|max\(evenkeel_\w+_seconds", expression):
        return "s"
    return "bytes" if re.match(r"\w+_bytes\{", expression) else "none"


def test_the_dashboard_shows_figures_as_what_they_are() -> None:
    for panel in _board()["panels"]:
        first, *others = (_unit_of(target["expr"]) for target in panel["targets"])
        assert panel["fieldConfig"]["defaults"]["unit"] == first, panel["title"]
        assert set(others) <= {first, "none"}, panel["title"]
        # What is true or wrong now is a figure; what goes up and down is a line.
        now = panel["gridPos"]["y"] == 0
        assert panel["type"] == ("stat" if now else "timeseries"), panel["title"]
        assert not now or panel["options"]["reduceOptions"]["calcs"] == ["lastNotNull"]


def test_panels_lie_beside_each_other_and_none_has_the_name_of_another() -> None:
    panels, taken = _board()["panels"], set[tuple[int, int]]()
    for panel in panels:
        x, y, wide, high = (panel["gridPos"][side] for side in "xywh")
        place = {(x + i, y + j) for i in range(wide) for j in range(high)}
        assert x + wide <= 24, panel["title"]
        assert not place & taken, panel["title"]
        taken |= place
        asked = [target["refId"] for target in panel["targets"]]
        assert len(set(asked)) == len(asked), panel["title"]  # of two one is never asked
        assert panel["description"], panel["title"]
    for name in ("id", "title"):
        assert len({panel[name] for panel in panels}) == len(panels)


def test_a_panel_shows_the_models_that_were_chosen() -> None:
    rows = re.findall(r"^\| (`.+?`) \| (.*?) \|", (_ROOT / "docs/operations.md").read_text(), re.M)
    of_models = {
        n for names, labels in rows if "model" in labels for n in re.findall(r"\w+", names)
    }
    assert "steps_total" in of_models
    for panel, expression in list(_expressions())[:-1]:
        for series, matchers in re.findall(r"\bevenkeel_(\w+)(?:\{(.*?)\})?", expression):
            name = re.sub("_(bucket|sum|count)$", "", series)
            assert name not in of_models or 'model=~"$model"' in matchers, (panel, series)


def test_shares_of_the_dashboard_are_not_upside_down_and_its_errors_are_errors() -> None:
    asked = {}
    for panel, expression in _expressions():
        asked[panel] = asked.get(panel, "") + expression
    assert re.search(
        r"_max_error\{.* / evenkeel_attestation_bound", asked["Error of the attestation"]
    )
    assert re.search(r"_sum\{.* / .*_count\{", asked["Rows a chunk"])
    assert 'code!=""' in asked["Errors, refusals and aborts"]
    reasons = re.search(r'reason=~"(.*?)"', asked["Goodput"])
    assert reasons
    assert {r: bool(re.fullmatch(reasons[1], r)) for r in ("stop", "length", "abort", "error")} == {
        "stop": True, "length": True, "abort": False, "error": False,
    }  # fmt: skip


def _rate_of(told: str, expression: str) -> float:
    """What an expression adds up, of the panels that add up one counter."""
    ((name, matchers),) = re.findall(r"rate\((\w+)\{(.*?)\}", expression)
    wanted = [m for m in re.findall(r'(\w+)=~?"(.*?)"', matchers) if m[1] != "$model"]
    samples = [s for f in text_string_to_metric_families(told) for s in f.samples]
    return sum(
        s.value
        for s in samples
        if s.name == name and all(re.fullmatch(v, s.labels.get(n, "")) for n, v in wanted)
    )


@pytest.mark.in_process
def test_a_session_which_is_no_job_of_the_engine_does_not_look_like_one_that_failed(
    scan: Service,
) -> None:
    asked, finished, *_ = [query for panel, query in _expressions() if panel == "Goodput"]
    before = scan.client.get("/metrics").text
    with online(scan, model="letters") as session:
        session.ask(bytes=[65])
    after = scan.client.get("/metrics").text
    of_sessions = 'path="/v1/online",status='
    assert after.count(of_sessions) > 0
    assert _rate_of(after, finished) == _rate_of(before, finished)
    assert _rate_of(after, asked) == _rate_of(before, asked)


def test_the_profile_finds_what_it_is_made_of() -> None:
    services = yaml.safe_load((_ROOT / "docker-compose.yml").read_text())["services"]
    scraped = yaml.safe_load((_OBSERVE / "prometheus.yml").read_text())["scrape_configs"]
    source = yaml.safe_load((_OBSERVE / "grafana/provisioning/datasources/prometheus.yml").read_text())  # fmt: skip # noqa: E501
    (found,) = scraped[0]["dns_sd_configs"]
    assert set(found["names"]) <= set(services)
    assert found["port"] == 8000
    assert found["type"] == "A"
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    rules = yaml.safe_load((_OBSERVE / "prometheus.yml").read_text())["global"]
    interval_s, limit_s = (
        int(rules[f"scrape_{name}"].removesuffix("s")) for name in ("interval", "timeout")
    )
    assert limit_s <= interval_s  # or Prometheus does not start
    assert source["datasources"][0]["jsonData"]["timeInterval"] == rules["scrape_interval"]
    asked = json.dumps(_board())
    assert set(re.findall(r'job=\\"(\w+)', asked)) == {scraped[0]["job_name"]}
    wanted = {name: source["datasources"][0][name] for name in ("type", "uid")}
    (variable,) = _board()["templating"]["list"]
    (alerts,) = _board()["annotations"]["list"]
    asking = [variable, alerts, *(part for p in _board()["panels"] for part in (p, *p["targets"]))]
    assert [part["datasource"] for part in asking] == [wanted] * len(asking)
    boards = yaml.safe_load((_OBSERVE / "grafana/provisioning/dashboards/evenkeel.yml").read_text())
    (place,) = [provider["options"]["path"] for provider in boards["providers"]]
    assert f"./deploy/observe/grafana/dashboards:{place}:ro" in services["grafana"]["volumes"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{place}/evenkeel.json"
    for name in ("prometheus", "grafana"):
        assert services[name]["profiles"] == ["observe"]
        for volume in services[name]["volumes"]:
            place = volume.partition(":")[0]
            assert not place.startswith(".") or (_ROOT / place).exists()


def test_of_two_bytes_the_second_says_how_long_each_takes() -> None:
    metrics = Metrics()
    metrics.count(Work("it", "stop", 3, 2, 1.0, 1.5, 3.0, 11.0))
    name = "evenkeel_inter_token_seconds_sum"
    assert metrics.registry.get_sample_value(name, {"model": "it"}) == 8.0
