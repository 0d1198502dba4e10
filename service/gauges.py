"""What the models are like at the moment Prometheus asks: gauges that nobody has to set."""

import math
import platform
from collections.abc import Callable, Iterator

import onnxruntime as ort
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from service.catalogue import Models
from service.models import ServedModel

# Of each model: name, meaning, value. What is not known yet is NaN.
_OF_A_MODEL: tuple[tuple[str, str, Callable[[ServedModel], float]], ...] = (
    (
        "attestation_ok",
        "1 if the golden vectors agreed when last replayed",
        lambda m: m.verdict.ok if m.verdict else math.nan,
    ),
    (
        "attestation_max_error",
        "Largest error of the last replay, against float64",
        lambda m: m.verdict.max_error if m.verdict else math.nan,
    ),
    (
        "attestation_bound",
        "How large that error may be",
        lambda m: m.verdict.bound if m.verdict else math.nan,
    ),
)


class ModelGauges(Collector):
    """Readiness, verdicts and versions."""

    def __init__(self, models: Models, version: str) -> None:
        self._models, self._version = models, version

    def collect(self) -> Iterator[Metric]:
        served = list(self._models)
        ready = GaugeMetricFamily(
            "evenkeel_model_ready", "1 while the model takes requests", labels=["model"]
        )
        failed = GaugeMetricFamily(
            "evenkeel_model_failed",
            "1 while its folder holds what cannot be served",
            labels=["model"],
        )
        for name, place in self._models.places.named.items():
            ready.add_metric([name], float(place.state == "ready"))
            failed.add_metric([name], float(place.problem is not None))
        yield from (ready, failed)
        stalled = GaugeMetricFamily(
            "evenkeel_stalled_seconds",
            "For how long the chunk under way has been at it, of a replaced model too",
            labels=["model"],
        )
        for name, stalled_s in self._models.stalled_s.items():
            stalled.add_metric([name], stalled_s)
        yield stalled
        for name, text, value in _OF_A_MODEL:
            gauge = GaugeMetricFamily(f"evenkeel_{name}", text, labels=["model"])
            for model in served:
                gauge.add_metric([model.name], float(value(model)))
            yield gauge
        facts = InfoMetricFamily("evenkeel_model", "What is served", labels=["model"])
        for model in served:
            runtime = model.runtime
            info = {"kind": model.artifact.manifest.kind, "digest": model.artifact.digest}
            info |= {"provider": runtime.provider, "runner": runtime.runner}
            facts.add_metric([model.name], info | {"threads": str(model.engine.threads)})
        yield facts
        yield GaugeMetricFamily(
            "evenkeel_ready", "1 while /readyz answers 200", float(self._models.ready)
        )
        build = {"version": self._version, "onnxruntime": ort.__version__}
        build["python"] = platform.python_version()
        yield InfoMetricFamily("evenkeel_build", "Versions", build)
